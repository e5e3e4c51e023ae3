"""NQSV, on captures made up in the form of published ones (captures/README.md)."""

from pathlib import Path

import pytest

from burstlab.scheduler import nqsv
from burstlab.scheduler.interface import FAILED, RUNNING, SchedulerError, Submission
from tests.scheduler.captured import captured


def test_it_is_submitted_and_never_run_again() -> None:
    job = Submission("bl-0123456789ab", 2, 90, Path("/log"), words=("-A", "NBB"))
    assert nqsv.submission(job, Path("/script")) == [
        *("qsub", "-N", "bl-0123456789ab", "-r", "n", "-j", "o", "-o", "/log"),
        *("-b", "2", "-l", "elapstim_req=1:30:00", "-A", "NBB", "/script"),
    ]


def test_the_id_stands_in_a_sentence() -> None:
    assert nqsv.submitted(captured("nqsv", "qsub")) == "949571.nqsv"


def test_a_refusal_is_told() -> None:
    with pytest.raises(SchedulerError, match="No such queue"):
        nqsv.submitted(captured("nqsv", "qsub_refused"))


def test_how_requests_stand() -> None:
    states = nqsv.states(captured("nqsv", "qstat_f"))
    assert {job: state.phase for job, state in states.items()} == {
        "949571.nqsv": RUNNING, "949572.nqsv": RUNNING, "949573.nqsv": FAILED,
    }  # fmt: skip
    assert "DELETE" in states["949573.nqsv"].reason


def test_a_gone_request_has_status_0_and_is_absent() -> None:
    answer = captured("nqsv", "qstat_f_absent")
    assert answer.status == 0
    assert nqsv.states(answer) == {}


def test_the_request_of_a_cell_is_found_by_its_whole_name() -> None:
    answer = captured("nqsv", "qstat_f")
    assert nqsv.ids_named(answer, "bl-0123456789ab") == ["949571.nqsv"]
    assert nqsv.ids_named(answer, "bl-00000000dead") == []


def test_no_answer_is_none() -> None:
    with pytest.raises(SchedulerError, match="Cannot connect"):
        nqsv.states(captured("nqsv", "qstat_down"))
