"""Names of the mount point lead to the exported directories, and nowhere else."""

import errno
from pathlib import Path

import pytest

from burstlab.errors import ConfigurationError
from burstlab.pfs.exports import Export, Exports


@pytest.fixture
def exports() -> Exports:
    return Exports([Export("work", Path("/srv/w")), Export("data", Path("/srv/d"), read_only=True)])


def refusal(function, *paths: bytes) -> int | None:
    with pytest.raises(OSError) as caught:
        function(*paths)
    return caught.value.errno


def test_a_path_is_found_below_its_export(exports):
    assert exports.reading(b"/work") == b"/srv/w"
    assert exports.reading(b"/work/a/\xff") == b"/srv/w/a/\xff"
    assert exports.writing(b"/work/a") == exports.entry(b"/work/a") == b"/srv/w/a"
    assert exports.reading(b"/data/x") == b"/srv/d/x"


def test_names_that_only_begin_like_an_export_are_not_there(exports):
    assert refusal(exports.reading, b"/work2/a") == errno.ENOENT
    assert refusal(exports.reading, b"/wor") == errno.ENOENT


def test_a_read_only_export_can_not_be_changed(exports):
    assert refusal(exports.writing, b"/data/x") == errno.EROFS
    assert refusal(exports.entry, b"/data/x") == errno.EROFS


def test_exports_themselves_neither_come_nor_go(exports):
    assert refusal(exports.entry, b"/work") == errno.EROFS
    assert refusal(exports.entry, b"/new") == errno.EROFS
    assert refusal(exports.writing, b"/") == errno.EROFS


def test_nothing_moves_between_exports(exports):
    exports.check_same(b"/work/x", b"/work/deep/y")
    assert refusal(exports.check_same, b"/work/x", b"/data/x") == errno.EXDEV


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
        Exports([Export("work", tmp_path), Export("work", tmp_path)])


def test_there_must_be_something_to_show():
    with pytest.raises(ConfigurationError, match="at least one --export"):
        Exports([])
