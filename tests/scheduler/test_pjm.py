"""Fujitsu's pjsub, on captures made up in the form of public ones (captures/README.md)."""

import pytest

from burstlab.scheduler import pjm
from burstlab.scheduler.interface import FAILED, RUNNING, SUCCESS, SchedulerError
from tests.scheduler.captured import captured


def test_the_id_stands_in_a_sentence() -> None:
    assert pjm.submitted(captured("pjm", "pjsub")) == "167661"


def test_a_refusal_with_status_0_is_told() -> None:
    assert captured("pjm", "pjsub_refused_status_0").status == 0
    with pytest.raises(SchedulerError, match="greater than the upper limit"):
        pjm.submitted(captured("pjm", "pjsub_refused_status_0"))


def test_waiting_and_running_jobs() -> None:
    states = pjm.states(captured("pjm", "pjstat"))
    assert {job: state.phase for job, state in states.items()} == {"1": RUNNING, "2": RUNNING}


def test_a_job_that_is_over_is_absent_until_history_is_asked() -> None:
    assert pjm.states(captured("pjm", "pjstat_none")) == {}
    assert pjm.history(["3"])[0][-3:] == ["-H", "day=365", "3"]


@pytest.mark.parametrize(
    ("job", "phase", "reason"),
    [
        ("3", SUCCESS, ""),
        ("4", FAILED, "exit status 3"),
        ("5", FAILED, "it was cancelled (PJM code 1"),
        ("6", FAILED, "it ran out of time (PJM code 11"),
        ("7", FAILED, "a node of it was lost (PJM code 20"),
        ("8", FAILED, "it was refused"),
    ],
)
def test_how_a_job_ended(job: str, phase: str, reason: str) -> None:
    state = pjm.past(captured("pjm", "pjstat_history"))[job]
    assert state.phase == phase
    assert state.reason.startswith(reason)


def test_the_job_of_a_cell_is_found_by_its_name() -> None:
    assert pjm.ids_named(captured("pjm", "pjstat"), "bl-0123456789ab") == ["1"]


def test_no_answer_is_none() -> None:
    with pytest.raises(SchedulerError, match="not in operation"):
        pjm.states(captured("pjm", "pjstat_down"))
