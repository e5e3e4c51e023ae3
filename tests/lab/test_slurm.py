"""Slurm on a lab's nodes does what it does on a cluster."""

import os
import sys

import pytest

from tests.lab.cluster import NODES, Cluster
from tests.polling import until

pytestmark = pytest.mark.requires("root", "netns", "lab")


@pytest.mark.parametrize("user", ["root", "lab"])
def test_srun_reaches_all_nodes_as_the_user(cluster: Cluster, user: str) -> None:
    said = cluster.run(
        "head", "srun", "-N4", "sh", "-c", "echo $(hostname) $(hostname -I) $(id -un)", user=user
    )
    assert sorted(line.split() for line in said.splitlines()) == [
        [node, f"10.77.0.{11 + number}", user] for number, node in enumerate(NODES)
    ]


def test_batch_job_of_an_ordinary_user_sees_its_nodes(cluster: Cluster) -> None:
    script = "#!/bin/sh\nscontrol show hostnames $SLURM_JOB_NODELIST\nsrun hostname | sort\n"
    said = batch(cluster, script, "-N2")
    assert said.splitlines() == ["node01", "node02", "node01", "node02"]


def test_a_job_has_the_processors_of_its_node() -> None:
    with Cluster() as lab:
        lab.must("up", "--nodes", "2", "--cores", "1")
        count = (sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))")
        said = lab.run("head", "srun", "-N2", *count).split()
        first, *rest = sorted(os.sched_getaffinity(0))
        assert sorted(map(int, said)) == [first, *(rest or [first])[:1]]


@pytest.mark.slow
def test_exit_status_of_a_job_comes_back(cluster: Cluster) -> None:
    submit = ("sbatch", "--wait", "-o", "/dev/null", "--wrap", "exit 3")
    done = cluster.lab("exec", "--user", "lab", "head", "--", *submit)
    assert done.returncode == 3
    assert state(cluster, "all").startswith("FAILED")


@pytest.mark.slow
def test_cancelled_job_is_cancelled_and_its_processes_are_gone(cluster: Cluster) -> None:
    job = submit(cluster, "sleep 3131", "-w", "node02")
    until(lambda: state(cluster, job) == "RUNNING", "the job runs")
    until(lambda: "sleep 3131" in cluster.run("node02", "ps", "-eo", "args"), "its process runs")
    cluster.run("head", "scancel", job)
    until(lambda: state(cluster, job) == "CANCELLED", "the job is cancelled")
    until(lambda: "sleep 3131" not in cluster.run("node02", "ps", "-eo", "args"), "it is gone")


def test_exclusive_jobs_wait_for_each_other(cluster: Cluster) -> None:
    first = submit(cluster, "sleep 60", "-N4", "--exclusive")
    until(lambda: state(cluster, first) == "RUNNING", "the first job runs")
    second = submit(cluster, "true", "-N1")
    assert state(cluster, second) == "PENDING"
    cluster.run("head", "scancel", first)
    until(lambda: state(cluster, second) == "COMPLETED", "the second job ran")


@pytest.mark.slow
def test_job_over_its_time_limit_is_ended(cluster: Cluster) -> None:
    job = submit(cluster, "sleep 300", "-t", "1")
    until(lambda: state(cluster, job) == "TIMEOUT", "the time limit", limit_s=120)


def submit(cluster: Cluster, command: str, *options: str) -> str:
    """Submit as the ordinary user; the job's id."""
    words = ("sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", command)
    return cluster.run("head", *words).strip()


def batch(cluster: Cluster, script: str, *options: str) -> str:
    """Run a batch script to its end; its output, from the user's home."""
    (cluster.directory / "job.sh").write_text(script)
    output = f"{cluster.directory}/home/job.out"
    words = ("sbatch", "--parsable", "-o", output, *options, f"{cluster.directory}/job.sh")
    job = cluster.run("head", *words).strip()  # --wait would look again after 10 s
    until(lambda: state(cluster, job) == "COMPLETED", "the job ran")
    return cluster.run("head", "cat", output)


def state(cluster: Cluster, job: str) -> str:
    """State of a job, or of the latest one."""
    which = () if job == "all" else ("-j", job)
    said = cluster.run("head", "squeue", "-h", "-t", "all", "-S", "-i", *which, "-o", "%T")
    return said.splitlines()[0] if said else ""
