"""The archive of a data set is made once, and whole, whoever else makes it or is killed."""

import fcntl
import os
import signal
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest

from burstlab.dataset.manifest import read_manifest
from burstlab.errors import StagingError
from burstlab.staging import archive
from tests.polling import until
from tests.staging.conftest import DEADLINE_S, Stage

pytestmark = pytest.mark.requires("burstio")


def packed(stage: Stage) -> dict[str, bytes]:
    """What is in the archive."""
    found = {}
    with tarfile.open(archive.archive_of(read_manifest(stage.manifest))) as opened:
        for member in opened:
            content = opened.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    return found


def nothing(files: int, size_bytes: int) -> None:
    """For who does not watch."""


def is_waited_for(path: Path) -> bool:
    """Whether somebody waits for a lock on this file (proc_locks(5))."""
    of_it = f":{path.stat().st_ino} "
    lines = Path("/proc/locks").read_text().splitlines()
    return any("-> FLOCK" in line and of_it in line for line in lines)


def test_who_comes_while_it_is_packed_waits_and_does_not_pack_again(stage: Stage) -> None:
    began, go_on = Event(), Event()

    def slow(files: int, size_bytes: int) -> None:
        began.set()
        assert go_on.wait(DEADLINE_S)

    with ThreadPoolExecutor(2) as pool:
        try:
            first = pool.submit(archive.pack, read_manifest(stage.manifest), stage.source, slow)
            until(began.is_set, "the first one packs")
            again = read_manifest(stage.manifest)
            second = pool.submit(archive.pack, again, stage.source, nothing)
            until(lambda: second.done() or is_waited_for(stage.manifest), "the second one waits")
        finally:
            go_on.set()
        assert first.result(DEADLINE_S)
        assert not second.result(DEADLINE_S)
    assert packed(stage) == stage.files
    assert stage.partials() == []


def test_two_that_know_nothing_of_each_other_leave_a_whole_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a parallel file system that has no locks."""

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(fcntl, "flock", refuse)
    both = Barrier(2, timeout=DEADLINE_S)

    def in_step(files: int, size_bytes: int) -> None:
        both.wait()

    with ThreadPoolExecutor(2) as pool:
        packing = [
            pool.submit(archive.pack, read_manifest(stage.manifest), stage.source, in_step)
            for _ in range(2)
        ]
        assert [one.result(DEADLINE_S) for one in packing] == [True, True]
    assert packed(stage) == stage.files
    assert stage.partials() == []


def test_what_a_killed_one_left_goes_away(stage: Stage) -> None:
    left = stage.manifest.with_name(".manifest.tar.0123abcd.burstlab-partial")
    left.write_bytes(b"torn")
    assert archive.pack(read_manifest(stage.manifest), stage.source, nothing)
    assert stage.partials() == []


def test_file_larger_than_what_is_read_ahead_passes_through(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "AHEAD_BYTES", 100_000)
    manifest = read_manifest(stage.manifest)
    assert archive.pack(manifest, stage.source, nothing)
    assert packed(stage) == stage.files
    archive.archive_of(manifest).unlink()
    (stage.source / "d1/e0/f6").write_bytes(bytes(3_000_000))
    with pytest.raises(StagingError, match="pack: d1/e0/f6: changed since"):
        archive.pack(manifest, stage.source, nothing)
    os.truncate(stage.source / "d1/e0/f6", 2_999_999)
    with pytest.raises(StagingError, match="pack: d1/e0/f6: changed since"):
        archive.pack(manifest, stage.source, nothing)
    assert not archive.archive_of(manifest).exists()
    assert stage.partials() == []


@pytest.mark.requires("staging")
def test_a_signal_ends_it_while_the_source_hangs(stage: Stage) -> None:
    """A pipe nobody writes to can't even be opened."""
    hanging = stage.source / "d0/e0/f0"
    hanging.unlink()
    os.mkfifo(hanging)
    running = stage.start("--method", "archive")
    try:
        until(stage.partials, "it packs")
        running.send_signal(signal.SIGTERM)
        told = running.communicate(timeout=DEADLINE_S)[0]
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    assert "stopped by SIGTERM" in told
    assert running.returncode == 128 + signal.SIGTERM
    assert stage.partials() == []
