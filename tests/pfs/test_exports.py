"""Names of the mount point lead to the exported directories, and nowhere else."""

import errno
import os
from pathlib import Path

import pytest

from burstlab.errors import ConfigurationError
from burstlab.pfs.exports import Export, check_names
from tests.pfs.emulator import FREE, Emulator, emulated


def refusal(function, *paths: Path) -> int | None:
    with pytest.raises(OSError) as caught:
        function(*paths)
    return caught.value.errno


@pytest.mark.requires("fuse", "burstio")
def test_a_path_is_found_below_its_export(emulator: Emulator, work: Path):
    name = os.fsdecode(b"a\xff")
    (emulator.backing / work.name / name).write_text("here")
    assert (work / name).read_text() == "here"


@pytest.mark.requires("fuse", "burstio")
def test_names_that_only_begin_like_an_export_are_not_there(emulator: Emulator):
    assert refusal((emulator.mount / "work2").stat) == errno.ENOENT
    assert refusal((emulator.mount / "wor").stat) == errno.ENOENT


@pytest.mark.requires("fuse", "burstio")
def test_nothing_moves_between_exports(tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    with emulated(tmp_path, *FREE, f"--export=other={other}") as running:
        (running.work / "file").touch()
        moved = (running.work / "file", running.mount / "other/file")
        assert refusal(os.rename, *moved) == errno.EXDEV
        assert refusal(os.link, *moved) == errno.EXDEV
        # Others than root are refused by the mode of the top already.
        refused = errno.EACCES if os.geteuid() else errno.EROFS
        assert refusal(os.rename, running.work, running.mount / "new") == refused


def test_an_export_is_read_from_its_text(tmp_path):
    (tmp_path / "a=b").mkdir()
    assert Export.parse(f"work={tmp_path}") == Export("work", tmp_path)
    assert Export.parse(f"work={tmp_path}:ro") == Export("work", tmp_path, read_only=True)
    assert Export.parse(f"work={tmp_path}/a=b") == Export("work", tmp_path / "a=b")


@pytest.mark.parametrize("text", ["", "work", "work=", "=/tmp", "a/b=/tmp", "..=/tmp", ".=/tmp"])
def test_a_malformed_export_is_named(text):
    with pytest.raises(ConfigurationError, match="give NAME=DIRECTORY"):
        Export.parse(text)


def test_an_export_must_be_a_directory(tmp_path):
    with pytest.raises(ConfigurationError, match="is no directory"):
        Export.parse(f"work={tmp_path}/absent")


def test_a_name_is_given_once(tmp_path):
    with pytest.raises(ConfigurationError, match=r"work=.*given twice"):
        check_names([Export("work", tmp_path), Export("work", tmp_path)])


def test_there_must_be_something_to_show():
    with pytest.raises(ConfigurationError, match="at least one --export"):
        check_names([])
