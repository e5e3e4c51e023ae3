"""Tiles from the archive, by the real mArchiveList and mArchiveExec; the archive is a double."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab.dataset import archive as module
from burstlab.dataset.make import make
from burstlab.dataset.manifest import Manifest, verify
from burstlab.dataset.model import TwoMass
from burstlab.errors import ConfigurationError
from tests.dataset.archive import Archive, served

pytestmark = pytest.mark.requires("montage")
REGION = {"ra_deg": 83.8187, "dec_deg": -5.3897, "width_deg": 0.3, "height_deg": 0.4}
DIRECTORY = "2mass-j-83.818700-5.389700-0.3x0.4"


@pytest.fixture
def archive(small_tiles: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    paths = sorted(small_tiles.glob("*.fits"))
    archive = Archive({f"2mass-atlas-{path.name}": path.read_bytes() for path in paths})
    for name in ("no_proxy", "NO_PROXY", "ALL_PROXY", "all_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with served(archive) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        yield archive


def fetched(tmp_path: Path) -> Manifest:
    dataset = TwoMass.model_validate({"kind": "2mass", "source": "fetched", "region": REGION})
    return make("2mass-test", dataset, tmp_path / "manifest.json")


def test_all_tiles_come_decompressed(archive: Archive, tmp_path: Path) -> None:
    manifest = fetched(tmp_path)
    assert (manifest.source, manifest.root) == ("fetched", tmp_path / DIRECTORY)
    assert manifest.details == {"survey": "2MASS", "band": "J", **REGION}
    assert {entry.path for entry in manifest.files} == {*archive.tiles}
    for name, content in archive.tiles.items():
        assert (manifest.root / name).read_bytes() == content
    assert verify(manifest, full=True) == []
    assert {path.suffix for path in manifest.root.iterdir()} == {".fits", ".tbl"}
    (asked,) = archive.regions
    assert (asked["survey"], asked["location"]) == (["2mass J"], ["83.818700 -5.389700"])
    assert asked["size"] == ["0.5000"]  # the diagonal: mArchiveList asks for a square


@pytest.mark.parametrize("fault", ["missing", "cut_short"])
def test_a_tile_that_did_not_come_is_named_and_only_it_is_fetched_again(
    archive: Archive, tmp_path: Path, fault: str
) -> None:
    lost = sorted(archive.tiles)[2]
    getattr(archive, fault).add(lost)
    with pytest.raises(
        ConfigurationError, match=f"1 of 6 tiles did not come, first {lost}: missing"
    ):
        fetched(tmp_path)
    assert not (tmp_path / DIRECTORY).exists() and not (tmp_path / "manifest.json").exists()
    archive.asked.clear()
    getattr(archive, fault).clear()
    assert fetched(tmp_path).file_count == 6
    assert (archive.asked, len(archive.regions)) == ([lost], 1)


def test_what_is_there_already_is_not_fetched_again(archive: Archive, tmp_path: Path) -> None:
    manifest = fetched(tmp_path)
    archive.asked.clear()
    hurt = manifest.root / sorted(archive.tiles)[0]
    hurt.write_bytes(hurt.read_bytes()[:-1])
    assert fetched(tmp_path).sha256 == manifest.sha256
    assert archive.asked == [hurt.name]


def test_an_archive_without_tiles_is_not_asked_for_each(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOGETHER", 2)
    archive.missing |= {*archive.tiles}
    with pytest.raises(ConfigurationError, match="6 of 6 tiles did not come"):
        fetched(tmp_path)
    assert {*archive.asked} == {*sorted(archive.tiles)[:2]}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"error":"Invalid survey: 2mass X"}\n', r"mArchiveList: Invalid survey: 2mass X"),
        ("<html>\n<body>Service unavailable</body>\n", "is no table of tiles"),
        ("|  cntr|                URL|          file|\n|   int|    char|   char|\n", "no tiles in"),
        ("|  cntr|\n|   int|\n      1\n", "no tiles in"),
        ("|  URL|          file|\n| char|      char|\n  x://  ../escape.fits \n", "is no name of"),
    ],
    ids=["error", "html", "empty", "other", "escape"],
)
def test_a_list_that_is_none_is_told(
    archive: Archive, tmp_path: Path, answer: str, told: str
) -> None:
    archive.answer = answer
    with pytest.raises(ConfigurationError, match=told) as caught:
        fetched(tmp_path)
    assert "\n" not in str(caught.value)
    archive.answer = None  # and it is not kept
    assert fetched(tmp_path).file_count == 6


def test_no_network_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # discard: nobody listens
    with pytest.raises(ConfigurationError, match=r"mArchiveList: 127\.0\.0\.1: connect failed"):
        fetched(tmp_path)


@pytest.mark.parametrize("absent", ["mArchiveList", "mArchiveExec", "wget"])
def test_a_missing_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    for name in {"mArchiveList", "mArchiveExec", "wget", "curl"} - {absent}:
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"{absent} is not on PATH: install Montage"):
        fetched(tmp_path)


def test_a_download_that_stalls_ends_and_leaves_no_process(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test's frame fails if a wget is left."""
    stuck = tmp_path / "bin" / "wget"
    stuck.parent.mkdir()
    stuck.write_text("#!/bin/sh\nsleep 600\n")
    stuck.chmod(stuck.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{stuck.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(module, "TILE_LIMIT_S", 0.1)
    with pytest.raises(ConfigurationError, match="mArchiveExec: no end after"):
        fetched(tmp_path)


def test_killed_while_it_fetches_it_goes_on_later(archive: Archive, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from burstlab.dataset.archive import fetch\n"
        "from burstlab.dataset.model import Region\n"
        "fetch(Region.model_validate_json(sys.argv[1]), 'J', Path(sys.argv[2]))"
    )
    region = '{"ra_deg": 83.8187, "dec_deg": -5.3897, "width_deg": 0.3, "height_deg": 0.4}'
    archive.stalls_at = 4
    child = subprocess.Popen(
        [sys.executable, "-c", program, region, str(tmp_path)], start_new_session=True
    )
    try:
        assert archive.stalled.wait(30)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    archive.goes_on.set()
    assert not (tmp_path / DIRECTORY).exists()
    archive.asked.clear()
    assert fetched(tmp_path).file_count == 6
    assert archive.asked == sorted(archive.tiles)[3:]
