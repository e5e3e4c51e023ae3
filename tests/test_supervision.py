"""Work in a child of its own, and the deaths that end it."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab.errors import BurstlabError, StagingError, StorageError
from burstlab.lease import WORKLOAD, Lease
from burstlab.supervision import Supervisor


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lease]:
    monkeypatch.setenv("BURSTLAB_STATE", str(tmp_path / "state"))
    lease = Lease.create()
    yield lease
    assert lease.clean() == []
    lease.release()


def refuse() -> None:
    raise StagingError("the source is gone")


def test_results_and_failures_come_back_from_the_child(held: Lease) -> None:
    supervisor = Supervisor(held)
    assert supervisor.call(os.getpid) != os.getpid()
    with pytest.raises(StagingError, match="the source is gone"):
        supervisor.call(refuse)
    with pytest.raises(OSError, match="No such file"):
        supervisor.call(os.stat, "/no/such/file")
    with pytest.raises(BurstlabError, match="ZeroDivisionError"):
        supervisor.call(divmod, 1, 0)


def test_a_child_that_is_killed_is_told(held: Lease) -> None:
    with pytest.raises(BurstlabError, match="killed by SIGKILL"):
        Supervisor(held).call(kill_myself)


def kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_dead_daemon_ends_the_wait_and_is_named(held: Lease) -> None:
    supervisor = Supervisor(held)
    daemon = held.spawn(["sleep", "60"], "gfsd")
    workload = held.spawn(["sleep", "60"], WORKLOAD)
    subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -9 {daemon.pid}"]).wait()
    with pytest.raises(StorageError, match="gfsd died"):
        supervisor.wait(workload)


def test_a_dead_daemon_ends_a_call_that_hangs(held: Lease) -> None:
    supervisor = Supervisor(held)
    daemon = held.spawn(["sleep", "0.3"], "gfmd")
    with pytest.raises(StorageError, match="gfmd died"):
        supervisor.call(time.sleep, 60)
    assert daemon.poll() == 0


def test_the_storages_own_account_ends_the_wait(
    held: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burstlab.supervision.INTERVAL_S", 0.05)
    supervisor = Supervisor(held)
    supervisor.problems = lambda: ["node02 no longer answers"]
    with pytest.raises(StorageError, match="node02 no longer answers"):
        supervisor.wait(held.spawn(["sleep", "60"], WORKLOAD))


def test_no_descriptor_is_left_open(held: Lease) -> None:
    supervisor = Supervisor(held)
    held.spawn(["sleep", "60"], "daemon")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        supervisor.call(os.getpid)
    supervisor.wait(held.spawn(["true"], WORKLOAD))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
