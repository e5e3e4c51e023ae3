"""What gfpcopy can't be given, and which ways there are."""

from pathlib import Path

import pytest

from burstlab.config.site import load_site
from burstlab.dataset.manifest import Entry, Manifest, read_manifest
from burstlab.dataset.writing import write_manifest
from burstlab.errors import ConfigurationError
from burstlab.storage.gfarm.staging import why_not_gfpcopy
from tests.cell.running import Place
from tests.requirements import ROOT


def manifest(path: str, root: Path) -> Manifest:
    """Of a data set with one file."""
    target = root.parent / "manifest.json"
    write_manifest(
        target, [Entry(path, 1, 0, "")], name="test", source="given", details={}, root=root,
        patterns=["**/*"],
    )  # fmt: skip
    return read_manifest(target)


def test_gfpcopy_gets_a_directory_that_is_the_data_set(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a/file").write_text("x")
    whole = manifest("a/file", root)
    assert why_not_gfpcopy(whole, root) == ""
    (root / "a/other").write_text("x")
    assert why_not_gfpcopy(whole, root).startswith(f"{root}/a/other is not of the data set")


def test_gfpcopy_gets_no_links(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("/etc/hostname")
    why = why_not_gfpcopy(manifest("link", root), root)
    assert "link is a symbolic link" in why


def test_an_option_that_is_none_is_refused_with_those_that_are(tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = place.run("--storage", "gfarm", "-o", "stage_in=scp", run=["true"])
    assert done.returncode == 120
    assert "-o stage_in=scp: mounts or gfpcopy is wanted" in done.stderr


def test_a_site_is_told_of_it_before_any_cell_starts(tmp_path: Path) -> None:
    sites = tmp_path / "config/sites"
    sites.mkdir(parents=True)
    lab = (ROOT / "config/sites/lab.yaml").read_text()
    (sites / "mine.yaml").write_text(f"{lab}\nstorages: {{gfarm: {{launcher: systemd}}}}\n")
    with pytest.raises(ConfigurationError, match="'systemd': burstlab or gfarmbb is wanted"):
        load_site("mine", tmp_path)
