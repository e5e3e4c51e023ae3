"""What a lease holds is gone after clean; nobody else's is touched."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from burstlab import lease, process
from burstlab.errors import BurstlabError
from burstlab.lease import Lease
from burstlab.mounts import mounted_at

HOLDER = """
import subprocess, sys, time
from pathlib import Path
from burstlab.errors import BurstlabError
from burstlab.lease import Lease
held = Lease.create(label="test")
held.directory(sys.argv[1])
held.spawn(["sh", "-c", "setsid sleep 60 & exec sleep 60"], "daemon")
print(held.id, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BURSTLAB_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def carriers(identifier: str) -> list[int]:
    """Processes that carry a cell's mark."""
    from burstlab.process import members

    return [m.pid for m in members(f"BURSTLAB_CELL={identifier}")]


def dead_holder(directory: Path) -> str:
    """A lease whose holder was killed with SIGKILL; its id."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, directory], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    identifier = holder.stdout.readline().strip()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    deadline = time.monotonic() + 10
    while len(carriers(identifier)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)  # the daemon and what it sets apart from itself
    return identifier


def test_clean_ends_processes_and_removes_directories(tmp_path: Path) -> None:
    held = Lease.create()
    directory = held.directory(tmp_path / "scratch")
    (directory / "file").write_text("data")
    child = held.spawn(["sleep", "60"], "daemon", directory=directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert held.clean() == []
    assert child.poll() is not None
    assert not directory.exists()
    held.release()
    assert lease.leases() == []


def test_a_process_names_itself_before_it_is_the_program(tmp_path: Path) -> None:
    held = Lease.create()
    child = held.spawn(["sleep", "60"], "daemon")
    deadline = time.monotonic() + 10
    while not lease.read(held.journal).processes and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [p.pid for p in lease.read(held.journal).processes] == [child.pid]
    held.clean()
    held.release()


def test_no_program_without_a_journal(tmp_path: Path) -> None:
    held = Lease.create()
    held.journal.unlink()
    held.journal.mkdir()  # now nothing can be appended to it
    witness = tmp_path / "started"
    child = held.spawn(["touch", witness], "daemon")
    assert child.wait() != 0
    assert not witness.exists()
    held.journal.rmdir()


def test_a_live_lease_is_never_reaped(tmp_path: Path) -> None:
    held = Lease.create()
    child = held.spawn(["sleep", "60"], "daemon")
    assert lease.reap() == []
    assert child.poll() is None
    held.clean()
    held.release()


def test_a_child_that_is_just_becoming_its_program_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux shows an empty environment in the middle of execve(2): the scan of /proc misses it."""
    held = Lease.create()
    child = held.spawn(["sleep", "60"], "daemon")

    def scan_that_misses_it(*_: object) -> list[process.Identity]:
        journalled_within(held.journal, deadline_s=10.0)
        return []

    monkeypatch.setattr(process, "members", scan_that_misses_it)
    assert held.clean() == []
    assert child.poll() is not None
    held.release()


def journalled_within(journal: Path, deadline_s: float) -> None:
    """Wait for the line that a child writes of itself."""
    end = time.monotonic() + deadline_s
    while not lease.read(journal).processes:
        assert time.monotonic() < end, "the child never wrote itself down"
        time.sleep(0.001)


def test_reap_cleans_what_a_killed_holder_left(tmp_path: Path) -> None:
    identifier = dead_holder(tmp_path / "scratch")
    assert len(carriers(identifier)) == 2
    assert lease.reap() == []
    assert carriers(identifier) == []
    assert not (tmp_path / "scratch").exists()
    assert lease.leases() == []


def test_a_lease_of_another_host_is_left_alone(tmp_path: Path) -> None:
    identifier = dead_holder(tmp_path / "scratch")
    journal = lease.leases()[0]
    text = journal.read_text()
    journal.write_text(text.replace(f'"host": "{os.uname().nodename}"', '"host": "elsewhere"'))
    assert lease.reap() == []
    assert journal.exists()
    assert len(carriers(identifier)) == 2
    journal.write_text(text)
    lease.reap()
    assert carriers(identifier) == []


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    dead_holder(tmp_path / "scratch")
    with lease.leases()[0].open("a") as journal:
        journal.write('{"directory": "/')
    assert lease.reap() == []
    assert not (tmp_path / "scratch").exists()


def test_the_beginning_of_a_lease_suffices_for_its_scratch(tmp_path: Path) -> None:
    held = Lease.create(scratch=str(tmp_path / "scratch"))
    held.directory(tmp_path / "scratch")
    (tmp_path / "scratch/file").touch()
    os.truncate(held.journal, len(held.journal.read_text().splitlines()[0]) + 1)
    assert held.clean() == []
    assert not (tmp_path / "scratch").exists()
    held.release()


def test_scratch_that_is_there_already_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    held = Lease.create(scratch=str(tmp_path / "scratch"))
    with pytest.raises(FileExistsError):
        held.directory(tmp_path / "scratch")
    assert held.clean() == []
    assert (tmp_path / "scratch").exists()
    held.release()


@pytest.mark.parametrize("kept", [2, 20])
def test_an_identity_that_is_cut_off_is_found_by_its_mark(tmp_path: Path, kept: int) -> None:
    identifier = dead_holder(tmp_path / "scratch")
    journal = lease.leases()[0]
    text = journal.read_text()
    journal.write_text(text[: text.rstrip().rindex("\n") + 1 + kept])
    assert lease.reap() == []
    assert carriers(identifier) == []
    assert not (tmp_path / "scratch").exists()


def test_a_lease_cut_to_nothing_ends_its_processes_and_tells_what_it_can_not_do(
    tmp_path: Path,
) -> None:
    identifier = dead_holder(tmp_path / "scratch")
    lease.leases()[0].write_text("")
    (problem,) = lease.reap()
    assert f"names begin with burstlab-{identifier}" in problem
    assert carriers(identifier) == []
    assert lease.reap() == []


@pytest.mark.requires("root")
def test_a_full_disk_under_the_journal_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", full], check=True)
    monkeypatch.setenv("BURSTLAB_STATE", str(full / "state"))
    try:
        held = Lease.create()
        with pytest.raises(OSError, match="No space left on device"):
            for number in range(1000):
                held.directory(tmp_path / str(number))
        assert not (tmp_path / str(number)).exists()
        assert held.journal.read_text().endswith("}\n"), "no half line for the next to spoil"
        assert held.clean() == []
        held.release()
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.requires("root")
def test_mounts_go_before_directories(tmp_path: Path) -> None:
    held = Lease.create()
    mount = held.directory(tmp_path / "mount")
    held.mount(mount)
    subprocess.run(["mount", "-t", "tmpfs", "none", mount], check=True)
    keeper = subprocess.Popen(["sleep", "60"], cwd=mount)
    assert held.clean() == []
    assert mounted_at(mount) is None
    assert not mount.exists()
    assert keeper.wait() == -signal.SIGTERM, "who works in a lease's directory is ended with it"
    held.release()


@pytest.mark.requires("root")
def test_what_is_mounted_below_a_directory_is_never_deleted(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("keep")
    held = Lease.create()
    scratch = held.directory(tmp_path / "scratch")
    inner = scratch / "inner"
    inner.mkdir()
    subprocess.run(["mount", "--bind", precious, inner], check=True)
    try:
        assert held.clean() == [f"{scratch} is not removed: {inner} is still mounted below it"]
        assert (precious / "data").read_text() == "keep"
    finally:
        subprocess.run(["umount", inner], check=True)
    assert held.clean() == []
    held.release()


def test_another_users_state_directory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = "/proc/1" if os.getuid() else "/nonexistent"
    if os.getuid() == 0:
        pytest.importorskip("pwd").getpwnam("nobody")
        path = Path(os.environ["BURSTLAB_STATE"])
        path.mkdir()
        os.chown(path, 65534, 65534)
        other = str(path)
    monkeypatch.setenv("BURSTLAB_STATE", other)
    with pytest.raises(BurstlabError, match="another user"):
        lease.state_directory()


def test_a_directory_that_was_there_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "data").write_text("keep")
    held = Lease.create()
    with pytest.raises(FileExistsError):
        held.directory(tmp_path / "precious")
    assert held.clean() == []
    assert (tmp_path / "precious" / "data").read_text() == "keep"
    held.release()


def test_a_directory_wanted_twice_stays_ours(tmp_path: Path) -> None:
    held = Lease.create()
    held.directory(tmp_path / "wanted")
    with pytest.raises(FileExistsError):
        held.directory(tmp_path / "wanted")
    assert held.clean() == []
    assert not (tmp_path / "wanted").exists()
    held.release()


def undo_by_touching(held: Lease, path: str, left: list[str]) -> list[str]:
    """An undo that shows when it ran: while the lease's directory was still there."""
    journal = lease.read(held.journal)
    Path(path).write_text(str([Path(one).exists() for one in journal.directories]))
    return left


@pytest.fixture
def undo(monkeypatch: pytest.MonkeyPatch) -> str:
    """The action's name; only burstlab's own modules are looked in."""
    monkeypatch.setattr(lease, "undo_by_touching", undo_by_touching, raising=False)
    return "burstlab.lease:undo_by_touching"


def test_what_was_announced_is_undone_before_anything_is_removed(tmp_path: Path, undo: str) -> None:
    held = Lease.create()
    held.directory(tmp_path / "scratch")
    held.undo(undo, path=str(tmp_path / "witness"), left=["half of it"])
    assert held.clean() == ["half of it"]
    assert (tmp_path / "witness").read_text() == "[True]"
    assert not (tmp_path / "scratch").exists()
    held.release()


def test_what_is_undone_already_is_not_undone_again(tmp_path: Path, undo: str) -> None:
    held = Lease.create()
    held.undo(undo, path=str(tmp_path / "witness"), left=[])
    held.undone(undo)
    assert held.clean() == []
    assert not (tmp_path / "witness").exists()
    held.release()


def test_an_undo_that_fails_is_told_and_the_rest_is_cleaned(tmp_path: Path, undo: str) -> None:
    held = Lease.create()
    held.directory(tmp_path / "scratch")
    held.undo(undo, path=str(tmp_path / "no" / "witness"), left=[])
    assert "FileNotFoundError" in held.clean()[0]
    assert not (tmp_path / "scratch").exists()
    held.release()
