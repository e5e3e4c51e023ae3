"""Every launcher, on a lab's nodes, keeps what burstlab expects of it (``conformance.py``)."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cells import Machine, command_line, pids_on
from tests.lab.cluster import NODES, Cluster
from tests.lab.job import HeldJob
from tests.launch.conformance import CHECKS, LOCAL
from tests.polling import until

LAUNCHERS = (LOCAL, "ssh", "srun", "mpirun")
PROGRAM = "tests.launch.conformance"
# Nodes that are directories of one host: no command reaches them, none is off, and what takes too
# long is ended by the cell's own time limit.
NOT_LOCAL = {
    "every_host_runs_the_command_once_and_its_words_arrive_unchanged",
    "a_command_that_fails_on_one_host_is_told_with_its_host",
    "a_word_stands_for_the_host_where_the_launcher_knows_its_name",
    "a_host_that_takes_too_long_is_told",
}
OFF = "a_host_that_does_not_answer_is_told"
CASES = [
    (name, launch)
    for name in CHECKS
    for launch in LAUNCHERS
    if name != OFF and (launch != LOCAL or name not in NOT_LOCAL)
]

pytestmark = [pytest.mark.requires("root", "netns", "lab", "ssh", "openmpi"), pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "4")
        yield cluster


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> HeldJob:
    return HeldJob(cluster, 4)


@pytest.fixture
def machines(cluster: Cluster, job: HeldJob) -> Iterator[dict[str, Machine]]:
    """Nothing may be left on any of them."""
    machines = {name: Machine(cluster, name) for name in NODES}
    yield machines
    await_nothing_left(machines)


@pytest.mark.parametrize(
    ("name", "launch"), CASES, ids=[f"{launch}-{name}" for name, launch in CASES]
)
def test_conformance(job: HeldJob, machines: dict[str, Machine], name: str, launch: str) -> None:
    done = job.python(PROGRAM, name, launch, *NODES)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("launch", LAUNCHERS)
def test_who_is_killed_leaves_nothing_on_the_other_hosts(
    job: HeldJob, machines: dict[str, Machine], launch: str, number: int
) -> None:
    holder = job.start(PROGRAM, "hold", launch, *NODES)
    hosts = NODES[:1] if launch == LOCAL else NODES
    marks = [job.cluster.directory / "machines" / host / "local/at-work" for host in hosts]
    until(lambda: all(mark.exists() for mark in marks), "all hosts work")
    os.kill(holder_pid(job.cluster), number)
    holder.communicate(timeout=60)
    for mark in marks:
        mark.unlink()
    await_nothing_left({name: machines[name] for name in NODES[1:]})
    job.python("burstlab", "reap")


@pytest.fixture(scope="module")
def without_the_last(job: HeldJob) -> dict[str, subprocess.CompletedProcess[str]]:
    """What each launcher made of a host that is off. Comes last: it is lost to the job.

    ssh is asked last, for Slurm soon takes note and then starts nothing on it.
    """
    job.cluster.must("kill", NODES[-1])
    try:
        return {launch: job.python(PROGRAM, OFF, launch, *NODES) for launch in LAUNCHERS[:0:-1]}
    finally:
        job.cluster.must("start", NODES[-1])


@pytest.mark.parametrize("launch", LAUNCHERS[1:])
def test_a_host_that_is_off(
    without_the_last: dict[str, subprocess.CompletedProcess[str]],
    machines: dict[str, Machine],
    launch: str,
) -> None:
    assert without_the_last[launch].returncode == 0, without_the_last[launch].stdout


def holder_pid(cluster: Cluster) -> int:
    """The process of the program itself."""
    pids = pids_on(cluster, NODES[0])
    return next(pid for pid in pids if command_line(pid)[1:4] == ["-m", PROGRAM, "hold"])


def await_nothing_left(machines: dict[str, Machine]) -> None:
    left: list[str] = []

    def nothing() -> bool:
        left[:] = [what for machine in machines.values() for what in machine.left()]
        return not left

    try:
        until(nothing, "nothing is left", limit_s=15)
    except AssertionError:
        raise AssertionError(f"left behind: {left}") from None


def test_every_launcher_is_here() -> None:
    from burstlab.launch import LAUNCHERS as known

    assert set(LAUNCHERS) == {LOCAL, *known}
    assert Path(__file__).with_name("conformance.py").exists()
