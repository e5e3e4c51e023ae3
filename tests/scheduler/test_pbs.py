"""PBS: everything a real server of OpenPBS 23.06.06 was seen to answer (captures/README.md)."""

from pathlib import Path

import pytest

from burstlab.scheduler import pbs
from burstlab.scheduler.interface import (
    FAILED,
    RUNNING,
    STUCK,
    SUCCESS,
    SchedulerError,
    Submission,
)
from tests.scheduler.captured import captured

JOB = Submission("bl-0123456789ab", 2, 90, Path("/home/alice/1.log"), "results/x/record.json",
                 ("-P", "grp01", "-q", "rt_HF"))  # fmt: skip


def test_it_is_submitted_whole_and_never_run_again() -> None:
    assert pbs.submission(JOB, Path("/home/alice/1.sh")) == [
        *("qsub", "-N", "bl-0123456789ab", "-r", "n", "-j", "oe", "-o", "/home/alice/1.log"),
        *("-l", "select=2", "-l", "walltime=1:30:00"),
        *("-P", "grp01", "-q", "rt_HF", "/home/alice/1.sh"),
    ]


def test_the_id_is_what_qsub_prints() -> None:
    assert pbs.submitted(captured("pbs", "qsub_ok")) == "0.head"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("qsub_unknown_queue", "Unknown queue"),
        ("qsub_hook_missing_project", "^qsub: Project is not specified. Use -P option.$"),
        ("qsub_server_down", "cannot connect to server"),
    ],
)
def test_a_refusal_is_told(name: str, said: str) -> None:
    with pytest.raises(SchedulerError, match=said):
        pbs.submitted(captured("pbs", name))


@pytest.mark.parametrize(
    ("name", "phase", "reason", "outer"),
    [
        ("queued", RUNNING, "Not enough free nodes", False),
        ("running", RUNNING, "", False),
        ("right_after_qdel", RUNNING, "", False),
        ("finished_ok", SUCCESS, "", False),
        ("exit3", FAILED, "exit status 3", False),
        ("sigkill_self", FAILED, "exit status 137", False),
        ("killed_by_qdel", FAILED, "it was cancelled by alice@head", True),
        ("walltime", FAILED, "it ran out of time (PBS exit status -29)", True),
        ("deleted_while_queued", FAILED, "it was deleted before it ran", True),
        ("afterok_dependency_failed", FAILED, "it was deleted before it ran", True),
        ("nodelost_norerun", FAILED, "its first node was lost", True),
        ("nodelost_rerunnable_requeued", RUNNING, "Not enough free nodes", False),
    ],
)
def test_how_a_job_stands(name: str, phase: str, reason: str, outer: bool) -> None:
    (state,) = pbs.states(captured("pbs", f"qstat_x_f_json_{name}")).values()
    assert (state.phase, state.outer) == (phase, outer)
    assert reason in state.reason
    assert bool(reason) == bool(state.reason)


def test_a_job_that_fits_nowhere_is_not_waited_for() -> None:
    (state,) = pbs.states(captured("pbs", "qstat_f_json_queued_never_fits")).values()
    assert state.phase == STUCK
    assert "Can Never Run: Not enough total nodes available" in state.reason


def test_json_that_is_none_is_read_all_the_same() -> None:
    states = pbs.states(captured("pbs", "qstat_f_json_odd_env_INVALID_JSON"))
    assert {job: state.phase for job, state in states.items()} == {"21.head": RUNNING}


def test_a_name_that_is_a_number_is_read() -> None:
    assert pbs.states(captured("pbs", "qstat_f_json_numeric_name"))


def test_the_newer_way_to_write_json_is_read() -> None:
    states = pbs.states(captured("pbs", "qstat_HEAD_x_f_json_odd_env.json"))
    assert {job: state.phase for job, state in states.items()} == {"54.head": SUCCESS}


def test_one_unknown_job_hides_no_other() -> None:
    states = pbs.states(captured("pbs", "qstat_x_f_json_two_ids_one_unknown"))
    assert {job: state.reason for job, state in states.items()} == {
        "11.head": "exit status 3",
        "12.head": "exit status 137",
    }


@pytest.mark.parametrize("name", ["qstat_x_history_off", "qstat_x_history_off_running_job"])
def test_without_history_status_0_means_nothing_and_the_job_is_asked_for_again(name: str) -> None:
    assert captured("pbs", name).status == 0
    assert pbs.states(captured("pbs", name)) == {}
    assert pbs.history(["29.head"]) == [["qstat", "-f", "-F", "json", "29.head"]]


@pytest.mark.parametrize("name", ["qstat_unknown", "qstat_f_json_finished_ok"])
def test_a_job_the_server_does_not_know_is_absent(name: str) -> None:
    assert pbs.past(captured("pbs", name)) == {}


def test_a_server_that_is_down_is_no_answer() -> None:
    with pytest.raises(SchedulerError, match="cannot connect to server head"):
        pbs.states(captured("pbs", "qstat_server_down"))


def test_a_lost_job_of_two_hosts_tells_them() -> None:
    (state,) = pbs.states(captured("pbs", "qstat_x_f_json_finished_ok")).values()
    assert set(state.hosts) <= {"node01", "node02"}
    assert state.hosts
