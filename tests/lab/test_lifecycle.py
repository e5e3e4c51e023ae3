"""Whatever ends a lab, and whenever: nothing of it stays, and no other lab is touched."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.lab.cluster import REPOSITORY, Cluster, host_traces, processes
from tests.polling import until

pytestmark = pytest.mark.requires("root", "netns", "lab")

BROKEN_UP = """
import sys, burstlab.cli, lab.slurm
lab.slurm.slurm_conf_text = lambda lab: "NoSuchKey=1"
sys.exit(burstlab.cli.main(sys.argv[1:]))
"""


def machines_running(cluster: Cluster) -> int:
    """Machines whose first process runs."""
    return sum(f"{cluster.directory} init" in words for _, words in processes("lab.machine"))


MOMENTS: dict[str, Callable[[Cluster], bool]] = {
    "lease written": lambda cluster: bool(cluster.journal()),
    "directory made": lambda cluster: cluster.directory.exists(),
    "site started": lambda cluster: len(cluster.site_pids()) >= 1,
    "site runs": lambda cluster: len(cluster.site_pids()) == 2,
    "a machine starts": lambda cluster: machines_running(cluster) >= 1,
    "all machines run": lambda cluster: machines_running(cluster) >= 6,
}


def test_up_and_down_leave_nothing_and_change_nothing_on_the_host(own: Cluster) -> None:
    before = host_traces()
    own.must("up", "--nodes", "2")
    assert host_traces() == before
    assert own.left() != []
    own.must("down")
    assert own.left() == []
    assert host_traces() == before


def test_a_directory_in_use_is_refused_and_left_alone(own: Cluster) -> None:
    own.must("up", "--nodes", "1")
    assert "exists" in own.lab("up").stderr
    assert own.run("head", "srun", "hostname") == "node01\n"


@pytest.mark.slow
def test_two_labs_live_side_by_side(own: Cluster, cluster: Cluster) -> None:
    own.must("up", "--nodes", "2")
    own.run("node01", "touch", "/local/mine", "/pfs/work/mine")
    assert "mine" not in cluster.run("node01", "ls", "/local", "/pfs/work")
    assert len(own.run("head", "srun", "-N2", "hostname").split()) == 2
    own.must("down")
    assert len(cluster.run("head", "srun", "-N4", "hostname").split()) == 4


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(one, marks=pytest.mark.slow if number else ())
        for number, one in enumerate(MOMENTS)
    ],
)
def test_down_cleans_up_after_a_killed_up(own: Cluster, moment: str) -> None:
    up = own.start("up", "--nodes", "2")
    until(lambda: MOMENTS[moment](own) or up.poll() is not None, moment)
    up.kill()
    up.communicate()
    own.must("down")
    until(lambda: own.left() == [], f"nothing is left, but there is {own.left()}", limit_s=5)


@pytest.mark.parametrize("moment", ["site started", "a machine starts"])
def test_a_terminated_up_undoes_what_it_did(own: Cluster, moment: str) -> None:
    up = own.start("up", "--nodes", "2")
    until(lambda: MOMENTS[moment](own), moment)
    up.terminate()
    _, said = up.communicate(timeout=60)
    assert up.returncode != 0
    assert "SIGTERM" in said
    until(lambda: own.left() == [], f"nothing is left, but there is {own.left()}", limit_s=5)


def test_down_ends_an_up_that_is_still_at_work(own: Cluster) -> None:
    up = own.start("up", "--nodes", "2")
    until(lambda: MOMENTS["a machine starts"](own), "a machine starts")
    own.must("down")
    assert own.left() == []
    up.communicate(timeout=60)
    assert up.returncode != 0


def test_up_with_a_daemon_that_fails_says_which_and_undoes_all(own: Cluster) -> None:
    command = [sys.executable, "-c", BROKEN_UP, *own.argv("up")[3:]]
    done = subprocess.run(
        command, env=own.environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 122
    assert done.stderr.startswith("burstlab lab: head: slurmctld")
    assert own.left() == []


def test_up_whose_file_system_does_not_start_says_why_and_undoes_all(own: Cluster) -> None:
    done = own.lab("up", "--pfs-option", "bandwidth_mb_s=-1")
    assert done.returncode == 125
    assert "parallel file system ended" in done.stderr and "-1: give a number" in done.stderr
    assert own.left() == []


@pytest.mark.slow
def test_who_works_in_the_directory_is_warned_and_not_killed(own: Cluster) -> None:
    own.must("up", "--nodes", "1")
    down = subprocess.run(
        own.argv("down"), env=own.environment, cwd=own.directory, capture_output=True, text=True
    )
    assert "leave it first" in down.stderr
    assert own.run("head", "srun", "hostname") == "node01\n"


@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_dead_site_takes_all_with_it_and_reap_cleans(own: Cluster, victim: int) -> None:
    own.must("up", "--nodes", "2")
    os.kill(own.site_pids()[victim], signal.SIGKILL)
    until(lambda: machines_running(own) == 0, "the machines end with their site")
    assert "is not up" in own.lab("status").stderr
    reap = [sys.executable, "-m", "burstlab", "reap"]
    subprocess.run(reap, env=own.environment, check=True, cwd=REPOSITORY, timeout=60)
    assert own.left() == []
