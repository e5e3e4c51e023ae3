"""What programs write is what they read, the ways they do it."""

import fcntl
import mmap
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.pfs.emulator import FREE, emulated

pytestmark = pytest.mark.requires("fuse", "burstio")
MIB = 1 << 20


def test_a_large_file_comes_back_and_lies_in_the_backing_directory(emulator, work):
    content = os.urandom(5 * MIB + 17)
    (work / "file").write_bytes(content)
    assert (work / "file").read_bytes() == content
    assert (emulator.backing / work.name / "file").read_bytes() == content


def test_a_file_beyond_4_gib_with_a_hole(work):
    descriptor = os.open(work / "file", os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, b"end", 5 << 30)
    assert os.fstat(descriptor).st_size == (5 << 30) + 3
    assert os.pread(descriptor, 8, (5 << 30) - 2) == b"\0\0end"
    assert os.lseek(descriptor, 0, os.SEEK_DATA) > 4 << 30
    assert os.fstat(descriptor).st_blocks * 512 < 10 * MIB
    os.close(descriptor)


def test_appends_of_two_writers_do_not_overwrite_each_other(work):
    writers = [os.open(work / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda w: [os.write(w, b"%7d\n" % w) for _ in range(200)], writers))
    lines = (work / "log").read_text().splitlines()
    assert sorted(map(int, lines)) == sorted(writers * 200)
    for writer in writers:
        os.close(writer)


def test_truncate_by_name_by_descriptor_and_at_open(work):
    path = work / "file"
    path.write_bytes(b"0123456789")
    os.truncate(path, 4)
    assert path.read_bytes() == b"0123"
    with path.open("r+b") as file:
        file.truncate(6)
        assert file.read() == b"0123\0\0"
    with path.open("wb"):
        assert path.stat().st_size == 0


def test_an_exclusive_create_fails_for_the_second(work):
    os.close(os.open(work / "lock", os.O_CREAT | os.O_EXCL))
    with pytest.raises(FileExistsError):
        os.open(work / "lock", os.O_CREAT | os.O_EXCL)


def test_a_shared_map_is_written_back(emulator, work):
    with (work / "file").open("w+b") as file:
        file.truncate(MIB)
        with mmap.mmap(file.fileno(), MIB) as view:
            view[70_000:70_005] = b"hello"
            view.flush()
            assert os.pread(file.fileno(), 5, 70_000) == b"hello"
    assert (emulator.backing / work.name / "file").read_bytes()[70_000:70_005] == b"hello"


def test_direct_io(work):
    descriptor = os.open(work / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    with mmap.mmap(-1, 2 * MIB) as block:
        block[:] = os.urandom(2 * MIB)
        written = bytes(block)
        assert os.pwritev(descriptor, [block], 0) == 2 * MIB
        block[:] = bytes(2 * MIB)
        assert os.preadv(descriptor, [block], 0) == 2 * MIB
        assert bytes(block) == written
    os.close(descriptor)


def test_space_is_reserved_and_holes_are_punched(work):
    path = work / "file"
    subprocess.run(["fallocate", "-l", "1M", path], check=True)
    assert path.stat().st_blocks * 512 >= MIB
    subprocess.run(["fallocate", "-p", "-o", "0", "-l", "512K", path], check=True)
    assert path.stat().st_size == MIB and path.stat().st_blocks * 512 < MIB


def test_what_was_changed_through_one_link_is_read_through_the_other(work):
    (work / "a").write_text("first ")
    os.link(work / "a", work / "b")
    assert (work / "b").read_text() == "first "
    with (work / "a").open("a") as file:
        file.write("second ")
    assert (work / "b").read_text() == "first second "
    with (work / "b").open("a") as file:
        file.write("third")
    assert (work / "a").read_text() == "first second third"


def test_locks_exclude(work):
    with (work / "file").open("w") as first, (work / "file").open("w") as second:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(BlockingIOError):
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.requires("fuse", "burstio", "root")
def test_a_full_backing_file_system_is_told_to_the_writer(small):
    with pytest.raises(OSError, match="No space left"):
        (small.work / "file").write_bytes(bytes(2 * MIB))
    (small.work / "file").unlink()
    (small.work / "small").write_bytes(b"fits")


@pytest.mark.requires("fuse", "burstio", "root")
def test_space_of_a_removed_file_is_there_once_it_is_closed_and_not_before(small):
    """However late the kernel tells of the last close: here it comes after the unlink."""
    held = removed_but_open(small.work / "file")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit((small.work / "small").write_bytes, b"fits")
        os.close(held)
        assert writing.result() == 4
    held = removed_but_open(small.work / "again")
    with pytest.raises(OSError, match="No space left"):
        (small.work / "more").write_bytes(b"does not fit")
    os.close(held)


def removed_but_open(path: Path) -> int:
    """Descriptor of a file that fills its file system and has no name any more."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="No space left"):
        while True:
            os.write(descriptor, bytes(MIB))
    path.unlink()
    return descriptor


@pytest.fixture
def small(tmp_path):
    """An emulator over a file system of 1 MiB."""
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", full], check=True)
    try:
        with emulated(tmp_path, *FREE, backing=full) as running:
            yield running
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.requires("pfs")
@pytest.mark.parametrize(
    "copy",
    [
        ["cp", "-a", "{source}/.", "{target}"],
        ["rsync", "-aHX", "{source}/", "{target}"],
        ["sh", "-c", 'tar -C "$0" -cf - . | tar -C "$1" -xpf -', "{source}", "{target}"],
    ],
    ids=["cp", "rsync", "tar"],
)
def test_a_tree_survives_being_copied_in_and_out(work: Path, tmp_path: Path, copy: list[str]):
    source, there, back = tmp_path / "source", work / "there", tmp_path / "back"
    for directory in (source / "deep/er", there, back):
        directory.mkdir(parents=True)
    for number in range(50):
        (source / "deep" / f"{number} é").write_bytes(os.urandom(number * 997))
    (source / "link").symlink_to("deep/er")
    os.link(source / "deep/7 é", source / "deep/er/again")
    (source / "script").write_text("#!/bin/sh\necho runs\n")
    (source / "script").chmod(0o751)
    os.utime(source / "deep/3 é", ns=(1_000_000_000, 2_000_000_000))
    for one, other in ((source, there), (there, back)):
        words = [word.format(source=one, target=other) for word in copy]
        subprocess.run(words, check=True, capture_output=True)
    subprocess.run(["diff", "-r", "--no-dereference", source, back], check=True)
    assert (back / "deep/3 é").stat().st_mtime_ns == 2_000_000_000
    assert (back / "deep/7 é").stat().st_nlink == 2
    assert subprocess.check_output([there / "script"], text=True) == "runs\n"
