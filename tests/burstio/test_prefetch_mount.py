"""The data set as a directory: what is read of the source for it, and a source that stalls."""

import errno
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.burstio import prefetch_set
from tests.polling import until

burstio = pytest.importorskip("burstio")
pytestmark = pytest.mark.requires("burstio", "fuse")

PAGE = 4096


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "mount").mkdir()
    root = tmp_path / "data"
    root.mkdir()
    return root


@contextmanager
def stalling(file: Path) -> Iterator[None]:
    """Opening it does not return within, as that of a file on a hanging mount."""
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    try:
        yield
    finally:
        opened = os.open(file, os.O_RDWR)
        file.unlink()  # for those who have not come so far
        os.close(opened)


def test_a_filling_that_pauses_leaves_the_memory_to_others(tmp_path: Path, root: Path) -> None:
    """It has read all that the memory holds, when a rank plans more than that."""
    held, size = 32, 8 * PAGE
    own, theirs = range(2 * held), range(2 * held, 3 * held + 4)
    names = [str(i) for i in (*own, *theirs)]
    for name in names:
        (root / name).write_bytes(bytes(size))
    memory = {"sizes": [size] * len(names), "memory_bytes": held * size}
    with (
        stalling(root / "0"),  # so that the filling waits, and takes nothing meanwhile
        burstio.Engine(root, names, cache=tmp_path / "cache", **memory) as engine,
        engine.mount(tmp_path / "mount", own),
        engine.stream() as rank,
    ):
        until(lambda: engine.statistics()["from_source"] == held - 1, "the memory is full")
        rank.plan(theirs)
        os.close(os.open(root / "0", os.O_WRONLY))  # it is told to be no file
        most = held * 3 // 4  # half would be what the filling gets with one call
        until(lambda: engine.statistics()["from_source"] >= held - 1 + most, "the rank's reads")
        assert len(rank.take(most)) == most
        assert engine.statistics()["beyond_budget"] == 0
        until(lambda: engine.statistics()["source_opens"] == len(names), "it goes on afterwards")


def test_a_file_whose_end_is_read_first_is_read_from_the_source_once(
    tmp_path: Path, root: Path
) -> None:
    content = os.urandom(1 << 20)  # several requests of the kernel
    (root / "file").write_bytes(content)
    with (
        burstio.Engine(root, ["file"]) as engine,
        engine.mount(tmp_path / "mount"),
        (tmp_path / "mount" / "file").open("rb", buffering=0) as file,
    ):
        assert os.pread(file.fileno(), PAGE, len(content) - PAGE) == content[-PAGE:]
        assert file.readall() == content
        assert engine.statistics()["source_opens"] == 1
        until(lambda: engine.statistics()["memory_used"] == 0, "only the kernel has it")


def test_a_file_that_is_read_in_place_is_counted(tmp_path: Path, root: Path) -> None:
    content = os.urandom(5 * PAGE)
    (root / "file").write_bytes(content)
    with (
        burstio.Engine(root, ["file"], memory_bytes=8 * PAGE) as engine,
        engine.mount(tmp_path / "mount"),
    ):
        assert (tmp_path / "mount" / "file").read_bytes() == content
        counted = engine.statistics()
    assert (counted["source_opens"], counted["source_bytes"]) == (1, len(content))


def test_a_stall_is_an_error_of_who_reads_the_directory(tmp_path: Path, root: Path) -> None:
    with (
        burstio.Engine(root, ["file"], sizes=[PAGE], time_limit_s=0.3) as engine,
        engine.mount(tmp_path / "mount"),
        stalling(root / "file"),
    ):
        with pytest.raises(OSError) as raised:
            (tmp_path / "mount" / "file").read_bytes()
        assert raised.value.errno in (errno.ETIMEDOUT, errno.EIO)


@pytest.mark.slow
def test_unmounting_waits_for_no_read_of_a_stalled_source(tmp_path: Path, root: Path) -> None:
    failed: list[type] = []  # not errors, which would hold on to the mount

    def unmount() -> None:
        try:
            mount.close()
        except OSError as error:
            failed.append(type(error))

    with (
        burstio.Engine(root, ["file"], sizes=[PAGE], time_limit_s=600) as engine,
        stalling(root / "file"),
    ):
        mount = engine.mount(tmp_path / "mount")
        read_and_be_killed(tmp_path / "mount" / "file", engine)
        unmounting = threading.Thread(target=unmount)
        unmounting.start()
        unmounting.join(60)
        assert not unmounting.is_alive()
        assert failed == [TimeoutError]
        assert not (tmp_path / "mount").is_mount()


@pytest.mark.slow
def test_an_agent_ends_though_a_read_of_its_directory_stalls(tmp_path: Path, root: Path) -> None:
    """Its reader was killed; what was read before is written."""
    (root / "file").write_bytes(bytes(PAGE))
    (root / "other").write_bytes(bytes(PAGE))
    told, mounted = tmp_path / "told.json", tmp_path / "mount"
    (tmp_path / "order").write_text("other\n")
    flags = ("--mount", mounted, "--cache", tmp_path / "cache", "--order", tmp_path / "order")
    limit = ("--time-limit-s", 600, "--statistics", told)
    with prefetch_set.agent(tmp_path, ["file", "other"], *flags, *limit) as (socket, process):
        client = burstio.connect(socket)
        until(lambda: client.statistics()["cache_samples"] == 1, "the cache is filled")
        assert (mounted / "file").stat().st_size == PAGE, "the kernel knows it from now on"
        with stalling(root / "file"):
            read_and_be_killed(mounted / "file", client)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 1, "one read hangs still"
        assert json.loads(told.read_text())["cache_samples"] == 1
        assert not mounted.is_mount()


def read_and_be_killed(file: Path, feeds: "burstio.Engine | burstio.Client") -> None:
    """A program that reads, and is killed when the source has been asked for it."""
    with subprocess.Popen(["cat", file], stdout=subprocess.DEVNULL) as reader:
        try:
            until(lambda: feeds.statistics()["in_flight"] == 1, "the source is asked for it")
        finally:
            reader.kill()
