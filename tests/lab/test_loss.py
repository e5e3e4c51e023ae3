"""A lost node is lost as on a cluster, is seen to be, and comes back."""

import os
import signal

import pytest

from tests.lab.cluster import Cluster
from tests.lab.test_slurm import state, submit
from tests.polling import until

pytestmark = [pytest.mark.requires("root", "netns", "lab"), pytest.mark.slow]
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def test_lost_node_falls_silent_its_job_fails_and_it_comes_back(own: Cluster) -> None:
    own.must("up", "--nodes", "2")
    before = own.run("node02", "sh", "-c", f"echo x >/local/kept; echo x >/tmp/lost; cat {BOOT_ID}")
    job = submit(own, "sleep 300", "-w", "node02", "--no-requeue")
    until(lambda: state(own, job) == "RUNNING", "the job runs")
    talking = own.start("exec", "node01", "--", "ssh", "node02", "echo hello; exec sleep 300")
    assert talking.stdout is not None and talking.stdout.readline() == "hello\n"

    own.must("kill", "node02")
    assert "is off" in own.lab("exec", "node02", "--", "true").stderr
    assert own.must("status").splitlines()[2].split()[:3] == ["node02", "10.77.0.12", "off"]
    until(lambda: state(own, job) == "NODE_FAIL", "Slurm sees the loss")
    until(lambda: "down" in node_state(own, "node02"), "the node is down")
    assert talking.poll() is None, "the connection was ended, which a dead node can't do"
    talking.kill()
    talking.communicate()

    own.must("start", "node02")
    assert node_state(own, "node02") == "idle"
    assert "is on already" in own.lab("start", "node02").stderr
    assert own.run("node02", "ls", "/local").split() == ["kept"]
    assert "lost" not in own.run("node02", "ls", "/tmp")
    assert own.run("node02", "cat", BOOT_ID) != before
    assert own.run("node01", "ssh", "node02", "hostname") == "node02\n"
    assert sorted(own.run("head", "srun", "-N2", "hostname").split()) == ["node01", "node02"]


def test_lost_head_comes_back_and_schedules_again(own: Cluster) -> None:
    own.must("up", "--nodes", "1")
    own.must("kill", "head")
    assert own.must("status").splitlines()[0].split() == ["head", "10.77.0.1", "off"]
    own.must("start", "head")
    until(lambda: node_state(own, "node01") == "idle", "slurmctld hears of its node")
    assert own.run("head", "srun", "hostname") == "node01\n"


def test_stalled_file_system_stalls_all_nodes_and_goes_on(own: Cluster) -> None:
    own.must("up", "--nodes", "2")
    server = int(own.must("status").splitlines()[-1].split()[-1])
    os.kill(server, signal.SIGUSR1)
    writing = [
        own.start("exec", node, "--", "sh", "-c", f"echo x >/pfs/work/{node}")
        for node in ("node01", "node02")
    ]
    log = own.directory / "log/pfs.log"
    until(lambda: "stalled" in log.read_text(), "the server says so")
    assert own.run("head", "srun", "-N2", "true") == "", "the nodes themselves live on"
    assert [child.poll() for child in writing] == [None, None]
    os.kill(server, signal.SIGUSR1)
    assert [child.communicate(timeout=60) and child.returncode for child in writing] == [0, 0]


def test_dead_file_system_is_seen_to_be_dead(own: Cluster) -> None:
    own.must("up", "--nodes", "1")
    os.kill(int(own.must("status").splitlines()[-1].split()[-1]), signal.SIGKILL)
    until(lambda: own.must("status").splitlines()[-1].endswith("off"), "status shows it")
    assert "not connected" in own.lab("exec", "node01", "--", "ls", "/pfs/work").stderr


def node_state(cluster: Cluster, node: str) -> str:
    """As `burstlab lab status` shows it."""
    lines = [line.split() for line in cluster.must("status").splitlines()]
    return next(" ".join(line[3:]) for line in lines if line[0] == node)
