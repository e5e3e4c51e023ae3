"""Why Slurm ends a job, from what its commands printed on a lab (22.05) while it did."""

from pathlib import Path

import pytest

from burstlab.scheduler.ending import ending

JOB = (
    "JobId=4 JobName=x UserId=lab(20000) Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 "
    "RunTime=00:00:16 PreemptEligibleTime=2026-11-21T06:55:23 PreemptTime=None NodeList={nodes} "
)
JOBS = {
    "goes on": "JobState=RUNNING Reason=None",
    "is suspended": "JobState=SUSPENDED Reason=None",
    "scancel": "JobState=COMPLETING Reason=None",
    "time": "JobState=COMPLETING Reason=TimeLimit",
    "node": "JobState=COMPLETING Reason=NodeDown",
    "other": "JobState=COMPLETING Reason=QOSUsageThreshold",
    "over": "JobState=TIMEOUT Reason=TimeLimit",
}
NODES = "node01 completing\nnode02 down*\n"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands that print files of this directory."""
    for name in ("scontrol", "sinfo"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ncat {tmp_path}/{name}.txt\n")
        program.chmod(0o755)
    (tmp_path / "sinfo.txt").write_text(NODES)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SLURM_JOB_ID", "4")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[01-02]")
    return tmp_path


@pytest.mark.parametrize(
    ("job", "cause"),
    [
        ("scancel", "cancelled (scancel)"),
        ("time", "the job's time limit"),
        ("over", "the job's time limit"),
        ("other", "Slurm says QOSUsageThreshold"),
    ],
)
def test_the_cause(slurm: Path, job: str, cause: str) -> None:
    (slurm / "scontrol.txt").write_text(JOB.format(nodes="node[01-02]") + JOBS[job])
    found = ending()
    assert found is not None
    assert (found.cause, found.lost) == (cause, None)


def test_a_preempted_job_is_not_told_to_be_cancelled(slurm: Path) -> None:
    job = JOB.format(nodes="node[01-02]").replace(
        "PreemptTime=None", "PreemptTime=2026-11-21T07:00"
    )
    (slurm / "scontrol.txt").write_text(job + JOBS["scancel"])
    found = ending()
    assert found is not None and found.cause == "preempted"


def test_hosts_that_are_lost(slurm: Path) -> None:
    (slurm / "scontrol.txt").write_text(JOB.format(nodes="node01") + JOBS["node"])
    found = ending()
    assert found is not None and found.lost == {"node02": "down*"}


def test_a_lost_host_that_is_back_already(slurm: Path) -> None:
    (slurm / "scontrol.txt").write_text(JOB.format(nodes="node01") + JOBS["node"])
    (slurm / "sinfo.txt").write_text("node01 completing\nnode02 idle\n")
    found = ending()
    assert found is not None and found.cause == "a node of it was lost"


@pytest.mark.parametrize("job", ["goes on", "is suspended"])
def test_a_job_that_goes_on(slurm: Path, job: str) -> None:
    (slurm / "scontrol.txt").write_text(JOB.format(nodes="node[01-02]") + JOBS[job])
    assert ending() is None


def test_no_answer_is_no_reason(slurm: Path) -> None:
    assert ending() is None, "scontrol failed"


def test_outside_of_a_job_nobody_is_asked(slurm: Path) -> None:
    (slurm / "scontrol.txt").write_text(JOB.format(nodes="node[01-02]") + JOBS["scancel"])
    assert ending({}) is None
