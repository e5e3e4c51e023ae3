"""What a program may expect of any storage, checked in one directory of it.

Standard library only, and a program of its own, so that it runs on any host that sees the
storage (and hangs alone if the storage does): ``conformance.py CHECK DIRECTORY [NEED ...]``.
Exit status 0: it does; 3: it refuses cleanly what not every storage has; 1: it fails.
``all`` runs every check in a process of its own, and prints what the failed ones said, as JSON.
"""

import errno
import hashlib
import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MIB = 1 << 20
REFUSED = 3
CHECK_S = 60.0
ATTRIBUTES_S = 5.0  # a client may show what it knows for a moment (attribute cache)
NOT_HERE = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENODEV, errno.EMLINK)

CHECKS: dict[str, Callable[[Path], None]] = {}


class Refusal(Exception):
    """The storage says that it does not have this."""


def check(function: Callable[[Path], None]) -> Callable[[Path], None]:
    CHECKS[function.__name__] = function
    return function


@check
def what_is_written_is_read_back(here: Path) -> None:
    for size in (0, 1, 4096, 4097, MIB + 1):
        content = os.urandom(size)
        (here / f"file{size}").write_bytes(content)
        assert (here / f"file{size}").read_bytes() == content
        assert (here / f"file{size}").stat().st_size == size


@check
def a_file_is_overwritten_in_the_middle_and_beyond_its_end(here: Path) -> None:
    with (here / "file").open("w+b") as file:
        file.write(b"0123456789")
        file.seek(4)
        file.write(b"xx")
        file.seek(100_000)
        file.write(b"end")
    content = (here / "file").read_bytes()
    assert content == b"0123xx6789" + bytes(100_000 - 10) + b"end"


@check
def appends_follow_each_other(here: Path) -> None:
    for number in range(20):
        with (here / "log").open("a") as log:
            log.write(f"{number}\n")
    assert (here / "log").read_text().split() == [str(number) for number in range(20)]


@check
def files_are_cut_and_emptied(here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"0123456789")
    os.truncate(path, 4)
    assert path.read_bytes() == b"0123"
    with path.open("r+b") as file:
        file.truncate(6)
    assert path.read_bytes() == b"0123\0\0"
    path.write_bytes(b"new")
    assert path.read_bytes() == b"new"


@check
def rename_replaces(here: Path) -> None:
    (here / "old").write_text("old")
    (here / "new").write_text("new")
    (here / "new").replace(here / "old")
    assert (here / "old").read_text() == "new" and _names(here) == ["old"]


@check
def a_finished_file_is_renamed_into_place_by_two_writers(here: Path) -> None:
    for writer in ("a", "b"):
        (here / f".{writer}.part").write_text(writer * 1000)
        (here / f".{writer}.part").replace(here / "result")
    assert (here / "result").read_text() == "b" * 1000 and _names(here) == ["result"]


@check
def directories_come_move_and_go(here: Path) -> None:
    (here / "a/b/c").mkdir(parents=True)
    (here / "a/b/c/file").write_text("x")
    _raises(errno.ENOTEMPTY, (here / "a/b").rmdir)
    _raises(errno.EEXIST, (here / "a").mkdir)
    (here / "a").rename(here / "z")
    assert (here / "z/b/c/file").read_text() == "x" and not (here / "a").exists()
    (here / "z/b/c/file").unlink()
    for name in ("z/b/c", "z/b", "z"):
        (here / name).rmdir()
    assert _names(here) == []


@check
def symbolic_links(here: Path) -> None:
    (here / "file").write_text("x")
    (here / "link").symlink_to("file")
    assert (here / "link").readlink() == Path("file") and (here / "link").read_text() == "x"
    (here / "link").unlink()
    assert (here / "file").exists()


@check
def hard_links(here: Path) -> None:
    (here / "a").write_text("x")
    _or_refusal(os.link, here / "a", here / "b")
    assert (here / "b").read_text() == "x" and (here / "a").stat().st_nlink == 2
    (here / "a").unlink()
    assert (here / "b").read_text() == "x" and (here / "b").stat().st_nlink == 1


@check
def modes_and_times_are_set(here: Path) -> None:
    path = here / "file"
    path.touch()
    path.chmod(0o750)
    os.utime(path, (1_000_000_000, 1_100_000_000))
    assert path.stat().st_mode & 0o777 == 0o750
    deadline = time.monotonic() + ATTRIBUTES_S
    while path.stat().st_mtime != 1_100_000_000:
        assert time.monotonic() < deadline, f"the time is {path.stat().st_mtime}"
        time.sleep(0.05)


@check
def a_script_runs_from_here(here: Path) -> None:
    script = here / "script"
    script.write_text("#!/bin/sh\necho runs\n")
    script.chmod(0o700)
    assert subprocess.check_output([script], text=True, timeout=30) == "runs\n"


@check
def a_file_is_usable_after_unlink(here: Path) -> None:
    with (here / "file").open("w+b") as file:
        file.write(b"before")
        file.flush()
        (here / "file").unlink()
        assert not (here / "file").exists()
        file.write(b" after")
        file.seek(0)
        assert file.read() == b"before after"


@check
def an_exclusive_create_fails_for_the_second(here: Path) -> None:
    os.close(os.open(here / "lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    _raises(errno.EEXIST, os.open, here / "lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)


@check
def what_is_not_there_is_said_not_to_be(here: Path) -> None:
    for action in (here / "no").read_bytes, (here / "no").unlink, (here / "no").rmdir:
        _raises(errno.ENOENT, action)
    _raises(errno.ENOENT, (here / "no").rename, here / "other")


@check
def names_of_all_kinds(here: Path) -> None:
    names = sorted(["with space", "ümläut-日本", "x" * 200, "-dash", "quo'te\"s", "semi;colon&"])
    for name in names:
        (here / name).write_text(name)
    assert _names(here) == names
    assert all((here / name).read_text() == name for name in names)


@check
def many_small_files(here: Path) -> None:
    expected = {}
    for directory in range(5):
        (here / str(directory)).mkdir()
        for number in range(40):
            content = f"{directory}/{number}".encode() * number
            (here / str(directory) / str(number)).write_bytes(content)
            expected[f"{directory}/{number}"] = content
    found = {
        str(path.relative_to(here)): path.read_bytes() for path in here.rglob("*") if path.is_file()
    }
    assert found == expected


@check
def a_file_of_64_mib(here: Path) -> None:
    written = hashlib.sha256()
    with (here / "file").open("wb") as file:
        for number in range(64):
            block = number.to_bytes(8, "big") * (MIB // 8)
            written.update(block)
            file.write(block)
    assert (here / "file").stat().st_size == 64 * MIB
    with (here / "file").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").digest() == written.digest()


@check
def files_written_at_the_same_time(here: Path) -> None:
    script = "import os, sys; open(sys.argv[1], 'wb').write(sys.argv[1][-1].encode() * 3_000_000)"
    paths = [here / f"file{number}" for number in range(4)]
    writers = [subprocess.Popen([sys.executable, "-c", script, path]) for path in paths]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    for number, path in enumerate(paths):
        assert path.read_bytes() == str(number).encode() * 3_000_000


@check
def fsync_of_file_and_directory(here: Path) -> None:
    with (here / "file").open("wb") as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
        os.fdatasync(file.fileno())
    directory = os.open(here, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _or_refusal(os.fsync, directory)
    finally:
        os.close(directory)


@check
def direct_io(here: Path) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_DIRECT
    descriptor = _or_refusal(os.open, here / "file", flags)
    with mmap.mmap(-1, MIB) as block:
        block[:] = content = os.urandom(MIB)
        assert os.pwritev(descriptor, [block], 0) == MIB
        block[:] = bytes(MIB)
        assert os.preadv(descriptor, [block], 0) == MIB
        assert block[:] == content
    os.close(descriptor)


@check
def a_private_map_of_a_file(here: Path) -> None:
    (here / "file").write_bytes(b"x" * 10_000)
    with (here / "file").open("rb") as file:
        view = _or_refusal(mmap.mmap, file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
        assert view[:] == b"x" * 10_000
        view.close()


@check
def a_shared_map_is_written_back(here: Path) -> None:
    with (here / "file").open("w+b") as file:
        file.truncate(MIB)
        view = _or_refusal(mmap.mmap, file.fileno(), MIB)
        view[70_000:70_005] = b"hello"
        view.flush()
        view.close()
    assert (here / "file").read_bytes()[70_000:70_005] == b"hello"


@check
def the_space_is_told(here: Path) -> None:
    found = os.statvfs(here)
    assert found.f_blocks > 0 and 0 < found.f_bavail <= found.f_blocks


NEEDED = {"mmap": ("a_shared_map_is_written_back", "a_private_map_of_a_file")}


def run_all(directory: str, *needs: str) -> int:
    """Every check, one after the other, below a new directory."""
    Path(directory).mkdir()
    failed = {}
    for name in CHECKS:
        words = [sys.executable, __file__, name, directory, *needs]
        try:
            done = subprocess.run(
                words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=CHECK_S
            )
        except subprocess.TimeoutExpired:
            failed[name] = f"no end after {CHECK_S:.0f} s"
            continue
        if done.returncode not in (0, REFUSED):
            failed[name] = done.stdout
    print(json.dumps(failed))
    return 0


def main(name: str, directory: str, *needs: str) -> int:
    """Run one check in a fresh directory below ``directory``."""
    if name == "all":
        return run_all(directory, *needs)
    here = Path(directory, f"check-{name}")
    here.mkdir()
    try:
        CHECKS[name](here)
    except Refusal as refusal:
        if any(name in NEEDED[need] for need in needs):
            raise
        print(refusal)
        return REFUSED
    return 0


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def _raises(number: int, action: Callable[..., object], *arguments: object) -> None:
    try:
        action(*arguments)
    except OSError as error:
        assert error.errno == number, f"{error}, and not {errno.errorcode[number]}"
        return
    raise AssertionError(f"{action} did not fail with {errno.errorcode[number]}")


def _or_refusal(action: Callable[..., Any], *arguments: object) -> Any:
    try:
        return action(*arguments)
    except OSError as error:
        if error.errno in NOT_HERE:
            raise Refusal(str(error)) from error
        raise


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
