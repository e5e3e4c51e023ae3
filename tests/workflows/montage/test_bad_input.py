"""Bad tiles and failing commands: the run fails, says why, and nothing half-done stays."""

import json
import os
import resource
import shutil
from pathlib import Path

import pytest

from .running import Workplace, pwrake, replace_program

pytestmark = pytest.mark.requires("montage")

ENGINES = [
    pytest.param("rake", id="rake"),
    pytest.param("pwrake", id="pwrake", marks=pytest.mark.requires("pwrake")),
]

# Adds a row to the table that the real program writes, in the widths of its columns.
APPEND_ROW = """$REAL "$@" || exit
awk 'NR == 1 { split($0, head, "|") }
     { print }
     END { n = split("ROW", cells, " ")
           for (i = 1; i <= n; i++) printf " %*s", length(head[i + 1]), cells[i]
           print " " }' "$2" > "$2.more" && mv "$2.more" "$2"
"""


def variables(engine: str) -> dict[str, str]:
    return pwrake() if engine == "pwrake" else {}


@pytest.fixture
def own_tiles(tiles: Path, tmp_path: Path) -> Workplace:
    """A cell with tiles of its own."""
    shutil.copytree(tiles, tmp_path / "tiles")
    return Workplace(tmp_path, tmp_path / "tiles")


@pytest.mark.parametrize("engine", ENGINES)
def test_truncated_tile(own_tiles: Workplace, engine: str) -> None:
    tile = sorted(own_tiles.tiles.glob("*.fits"))[4]
    os.truncate(tile, tile.stat().st_size // 2)
    done = own_tiles.run("--engine", engine, **variables(engine))
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if "mProjectPP" in line]
    assert str(tile) in line and "error reading from FITS file" in line
    assert not list(own_tiles.mount.glob(f"projected/{tile.stem}*"))
    assert not (own_tiles.mount / "mosaic.fits").exists()
    assert not (own_tiles.cell / "metrics.json").exists()
    tried = [row for row in own_tiles.operations() if row["task"] == f"projected/{tile.name}"]
    assert [row["status"] for row in tried] == ["1"]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_tiles(tmp_path: Path, engine: str) -> None:
    (tmp_path / "tiles").mkdir()
    done = Workplace(tmp_path, tmp_path / "tiles").run("--engine", engine, **variables(engine))
    assert done.returncode == 1
    assert f"{tmp_path / 'tiles'}: no tiles (*.fits)" in done.stderr


def test_what_is_no_image_is_counted_and_named(own_tiles: Workplace) -> None:
    tile = sorted(own_tiles.tiles.glob("*.fits"))[2]
    tile.write_text("no image at all")
    done = own_tiles.run()
    assert done.returncode == 1
    assert f"1 of 9 files are not readable as images, first {tile.name}" in done.stderr
    assert not (own_tiles.mount / "images.tbl").exists()


@pytest.mark.slow
def test_lonely_tile_is_added_and_reported(own_tiles: Workplace) -> None:
    every = sorted(own_tiles.tiles.glob("*.fits"))
    for tile in every[2:-1]:
        tile.unlink()
    done = own_tiles.run()
    assert done.returncode == 0, done.stderr
    issues = json.loads((own_tiles.cell / "issues.json").read_text())
    assert issues == [f"{every[-1].name} overlaps no other tile: its background is not matched"]
    assert own_tiles.facts()["pairs"] == "1"


@pytest.mark.slow
def test_single_tile(own_tiles: Workplace) -> None:
    for tile in sorted(own_tiles.tiles.glob("*.fits"))[1:]:
        tile.unlink()
    done = own_tiles.run()
    assert done.returncode == 0, done.stderr
    assert own_tiles.facts()["pairs"] == "0"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_pair_whose_pixels_do_not_meet(place: Workplace, engine: str) -> None:
    """mOverlaps compares outlines, so mDiff may find nothing: the first and the last tile here."""
    names = [path.name for path in sorted(place.tiles.glob("*.fits"))]
    row = f"0 8 {names[0]} {names[-1]} diff.000000.000008.fits"
    path = replace_program(place.root / "bin", "mOverlaps", APPEND_ROW.replace("ROW", row))
    done = place.run("--engine", engine, **variables(engine), PATH=path)
    assert done.returncode == 0, done.stderr
    assert place.facts()["pairs_apart"] == "1"
    failed = [row for row in place.operations() if row["status"] != "0"]
    assert [row["task"] for row in failed] == ["differences/diff.000000.000008.fits"]
    assert place.check().returncode == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_error_with_exit_status_0_is_a_failure(place: Workplace, engine: str) -> None:
    script = """$REAL "$@"; echo '[struct stat="ERROR", msg="disk is full"]'; exit 0"""
    path = replace_program(place.root / "bin", "mBackground", script)
    done = place.run("--engine", engine, **variables(engine), PATH=path)
    assert done.returncode == 1
    assert "exit status 0: disk is full" in done.stderr
    assert not list((place.mount / "corrected").iterdir())


@pytest.mark.slow
def test_partial_outputs_are_removed(place: Workplace) -> None:
    """A file size limit ends mProjectPP as a full disk would, in the midst of its output."""
    limit = 100_000  # bytes; a projected tile has 280,000
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        done = place.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.returncode == 1
    assert "mProjectPP" in done.stderr and "exit status 153" in done.stderr
    assert [p.name for p in (place.mount / "projected").iterdir()] == []
    again = place.run()
    assert again.returncode == 0, again.stderr
