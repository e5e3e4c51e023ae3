"""Grid Engine on a lab's nodes does what it does on a cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import gridengine
from lab.layout import Lab
from tests.lab.cluster import Cluster
from tests.polling import until

NEEDS = pytest.mark.requires("root", "netns", "lab", "lab-gridengine")

QUIET = ("-j", "y", "-o", "/dev/null")
JOB = """#!/bin/sh
echo $NHOSTS
cut -d' ' -f1,2 $PE_HOSTFILE | sort
for host in $(cut -d' ' -f1 $PE_HOSTFILE | sort); do qrsh -inherit $host hostname; done
id -un
"""
QSTAT = """\
queuename                      qtype resv/used/tot. load_avg arch          states
---------------------------------------------------------------------------------
all.q@node01                   BIP   0/1/2          5.27     lx-amd64
---------------------------------------------------------------------------------
all.q@node02                   BIP   0/0/2          -NA-     lx-amd64      au
---------------------------------------------------------------------------------
all.q@node03                   BIP   0/0/2          -NA-     -NA-
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes under Grid Engine."""
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "2", "--scheduler", "gridengine")
        yield cluster


def test_a_node_is_ready_only_when_it_reports_and_nothing_is_wrong() -> None:
    states = gridengine.states(QSTAT)
    assert states == {"node01": "0/1/2", "node02": "0/0/2 au", "node03": "0/0/2 unknown"}
    assert [node for node, state in states.items() if gridengine.is_ready(state)] == ["node01"]


def test_the_queue_has_the_labs_nodes_and_cores() -> None:
    lab = Lab(Path("/var/tmp/lab"), nodes=3, cores=8, scheduler="gridengine")
    queue = gridengine.templates(lab)[gridengine.QUEUE_FILE].splitlines()
    assert "hostlist node01 node02 node03" in queue
    assert "slots 8" in queue


@pytest.mark.slow
@NEEDS
def test_parallel_job_of_an_ordinary_user_reaches_its_hosts(cluster: Cluster) -> None:
    (cluster.directory / "job.sh").write_text(JOB)
    output = f"{cluster.directory}/home/job.out"
    submit(cluster, "-pe", "nodes", "2", "-j", "y", "-o", output, f"{cluster.directory}/job.sh")
    said = cluster.run("head", "cat", output).splitlines()
    assert said == ["2", "node01 1", "node02 1", "node01", "node02", "lab"]


@pytest.mark.slow
@NEEDS
def test_exit_status_of_a_job_comes_back_and_is_accounted(cluster: Cluster) -> None:
    (cluster.directory / "failing").write_text("#!/bin/sh\nexit 3\n")
    assert submit(cluster, *QUIET, f"{cluster.directory}/failing") == 3

    def accounted() -> bool:
        done = cluster.lab("exec", "--user", "lab", "head", "--", "qacct", "-j", "failing")
        return ["exit_status", "3"] in [line.split() for line in done.stdout.splitlines()]

    until(accounted, "qacct knows the job")


@pytest.mark.slow
@NEEDS
def test_deleted_job_is_gone_with_its_processes(cluster: Cluster) -> None:
    words = ("qsub", "-terse", *QUIET, "-l", "h=node02", "-b", "y", "sleep", "3232")
    job = cluster.run("head", *words).strip()
    until(lambda: "sleep 3232" in cluster.run("node02", "ps", "-eo", "args"), "the job runs")
    cluster.run("head", "qdel", job)
    until(lambda: "sleep 3232" not in cluster.run("node02", "ps", "-eo", "args"), "it is gone")
    until(lambda: cluster.run("head", "qstat") == "", "Grid Engine has forgotten it")


@NEEDS
@pytest.mark.slow
def test_lost_node_is_seen_and_comes_back(own: Cluster) -> None:
    own.must("up", "--nodes", "1", "--scheduler", "gridengine")
    own.must("kill", "node01")
    until(lambda: own.must("status").splitlines()[1].endswith("u"), "qmaster misses the node")
    own.must("start", "node01")
    assert submit(own, *QUIET, "-b", "y", "true") == 0


def submit(cluster: Cluster, *words: str) -> int:
    """Submit as the ordinary user and wait; the job's exit status."""
    done = cluster.lab("exec", "--user", "lab", "head", "--", "qsub", "-sync", "y", *words)
    assert "exited" in done.stdout + done.stderr, done.stdout + done.stderr
    return done.returncode
