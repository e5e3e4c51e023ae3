"""Grid Engine: what the lab's answered (captures/README.md)."""

import pytest

from burstlab.scheduler import gridengine
from burstlab.scheduler.interface import FAILED, RUNNING, STUCK, SUCCESS, Answer, SchedulerError
from tests.scheduler.captured import captured


def test_the_id_is_what_qsub_prints() -> None:
    assert gridengine.submitted(captured("gridengine", "submitted")) == "1"


@pytest.mark.parametrize(
    ("name", "said"),
    [("refused", 'unknown resource "nosuch"'), ("refused_pe", 'environment "wrong" does not')],
)
def test_a_refusal_is_told(name: str, said: str) -> None:
    with pytest.raises(SchedulerError, match=said):
        gridengine.submitted(captured("gridengine", name))


def test_waiting_and_running_jobs() -> None:
    states = gridengine.states(captured("gridengine", "qstat_some"))
    assert {job: state.phase for job, state in states.items()} == dict.fromkeys("3456", RUNNING)
    assert states["3"].hosts == ("node01", "node02")


def test_a_job_whose_node_is_unreachable_is_not_waited_for() -> None:
    (state,) = gridengine.states(captured("gridengine", "qstat_node_lost")).values()
    assert state.phase == STUCK
    assert "its node node02 was lost" in state.reason


def test_names_are_whole_and_jobs_count_once() -> None:
    answer = captured("gridengine", "qstat_some")
    assert gridengine.ids_named(answer, "bl-slow") == ["5"]
    assert gridengine.ids_named(answer, "bl-s") == []


@pytest.mark.parametrize(
    ("name", "phase", "reason", "outer"),
    [
        ("good", SUCCESS, "", False),
        ("exit3", FAILED, "exit status 3", False),
        ("deleted", FAILED, "it was cancelled, or killed from outside", True),
        ("time", FAILED, "it ran out of time", True),
    ],
)
def test_how_a_job_ended(name: str, phase: str, reason: str, outer: bool) -> None:
    (state,) = gridengine.past(captured("gridengine", f"qacct_{name}")).values()
    assert (state.phase, state.outer) == (phase, outer)
    assert state.reason.startswith(reason)


def test_a_job_that_is_not_accounted_yet_is_absent() -> None:
    assert gridengine.past(captured("gridengine", "qacct_unknown")) == {}


@pytest.mark.parametrize("answer", [Answer("", "error: commlib error", 1), Answer("half", "", 0)])
def test_no_answer_is_none(answer: Answer) -> None:
    with pytest.raises(SchedulerError, match="qstat"):
        gridengine.states(answer)
