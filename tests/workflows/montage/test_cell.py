"""Montage as a cell: bad tiles make it fail with the reason, and the next one is good."""

import os
import shutil
from pathlib import Path

import pytest

from burstlab.dataset.writing import scan, write_manifest
from tests.cell.running import Place

pytestmark = [pytest.mark.requires("montage"), pytest.mark.slow]
RUN = Path(__file__).resolve().parents[3] / "workflows" / "montage" / "run"


def run(place: Place, tiles: Path) -> str:
    """A cell on these tiles; the reason of its failure, or nothing."""
    names = [str(path.relative_to(tiles)) for path in tiles.rglob("*") if path.is_file()]
    manifest = place.root / "manifest.json"
    write_manifest(
        manifest, scan(tiles, names), name="tiles", source="given", details={}, root=tiles,
        patterns=("**",),
    )  # fmt: skip
    data = ["--dataset", manifest, "--staging", "eager", "--stage-out", "mosaic.png"]
    done = place.run("--storage", "nodelocal", *data, run=[RUN, "--engine", "rake"])
    record = place.record()
    assert record is not None and place.left_behind() == []
    assert record["status"] == ("failed" if done.returncode else "ok"), done.stderr
    assert (place.cell / "outputs" / "mosaic.png").exists() == (done.returncode == 0)
    return str(record["reason"])


def test_a_bad_tile_is_named_by_the_record_and_the_next_cell_is_good(
    tiles: Path, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    own, none = tmp_path / "tiles", tmp_path / "none"
    shutil.copytree(tiles, own)
    none.mkdir()
    (none / "readme").touch()
    whole = sorted(own.glob("*.fits"))[4]
    content = whole.read_bytes()
    os.truncate(whole, len(content) // 2)
    reason = run(place, own)
    assert reason.startswith("the workload ended with exit status 1: mProjectPP ")
    assert whole.name in reason and "error reading from FITS file" in reason
    assert run(place, none).endswith("/dataset: no tiles (*.fits)")
    whole.write_bytes(content)
    assert run(place, own) == ""
