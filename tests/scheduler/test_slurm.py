"""Slurm: what the lab's answered (captures/README.md)."""

from pathlib import Path

import pytest

from burstlab.scheduler import slurm
from burstlab.scheduler.interface import (
    FAILED,
    RUNNING,
    STUCK,
    SUCCESS,
    Answer,
    SchedulerError,
    Submission,
)
from tests.scheduler.captured import captured


def test_it_is_submitted_and_never_run_again() -> None:
    job = Submission("bl-0123456789ab", 2, 90, Path("/log"), "results/x/record.json", ("-p", "m"))
    argv = slurm.submission(job, Path("/script"))
    assert {"--no-requeue", "--job-name=bl-0123456789ab", "--nodes=2", "--time=90"} <= {*argv}
    assert argv[-3:] == ["-p", "m", "/script"]


def test_the_id_is_what_sbatch_prints() -> None:
    assert slurm.submitted(captured("slurm", "submitted")) == "13"
    assert slurm.submitted(Answer("13;other\n", "", 0)) == "13"


def test_a_refusal_is_told() -> None:
    refusal = Answer("", "sbatch: error: Batch job submission failed: Invalid qos\n", 1)
    with pytest.raises(SchedulerError, match="Invalid qos"):
        slurm.submitted(refusal)


def test_how_jobs_stand() -> None:
    states = slurm.states(captured("slurm", "squeue_some"))
    assert {job: state.phase for job, state in states.items() if int(job) > 12} == {
        "13": SUCCESS, "14": FAILED, "15": FAILED, "16": RUNNING, "17": RUNNING, "18": STUCK,
        "19": RUNNING, "20": STUCK,
    }  # fmt: skip
    assert states["15"].outer
    assert not states["14"].outer
    assert states["16"].hosts == ("node01",)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("CANCELLED by 1000", "it was cancelled"),
        ("TIMEOUT", "it ran out of time"),
        ("NODE_FAIL", "a node of it was lost"),
        ("OUT_OF_MEMORY", "it ran out of memory"),
        ("PREEMPTED", "it was preempted"),
    ],
)
def test_how_the_accounting_says_it(told: str, reason: str) -> None:
    (state,) = slurm.past(Answer(f"7|{told}|None|node01|bl-x\n", "", 0)).values()
    assert state.phase == FAILED
    assert state.reason == f"{reason} (Slurm says {told})"


def test_a_cluster_without_accounting_knows_nothing_of_the_past() -> None:
    assert slurm.past(captured("slurm", "sacct_off")) == {}


def test_the_job_of_a_cell_is_found_by_its_name() -> None:
    assert slurm.ids_named(captured("slurm", "squeue_named"), "bl-run") == ["16"]


def test_no_answer_is_none() -> None:
    down = Answer("", "slurm_load_jobs error: Unable to contact slurm controller\n", 1)
    with pytest.raises(SchedulerError, match="Unable to contact"):
        slurm.states(down)
