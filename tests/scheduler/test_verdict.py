"""When a job is over, and which of its witnesses is believed."""

import pytest

from burstlab.scheduler.answers import Seen
from burstlab.scheduler.interface import FAILED, RUNNING, STUCK, SUCCESS, JobState
from burstlab.scheduler.script import Witness
from burstlab.scheduler.verdict import GONE_S, SILENCE_S, Verdict, judge

NOW, POLL = 10_000.0, 10.0
STARTED = Witness("7", NOW - 100, ("node01",))
WELL = Witness("7", NOW - 100, ("node01",), 0, NOW - 1)
BADLY = Witness("7", NOW - 100, ("node01",), 143, NOW - 1)
CANCELLED = JobState(FAILED, "it was cancelled", True)


def seen(state: JobState | None, ago_s: float = 1.0, silence: str = "") -> Seen:
    return Seen(state, NOW - ago_s, silence)


@pytest.mark.parametrize(
    ("word", "answer", "verdict"),
    [
        # the job's own word of a good end needs no other witness
        (WELL, None, Verdict(SUCCESS)),
        (WELL, seen(None, silence="down"), Verdict(SUCCESS)),
        # of a bad end the scheduler knows why
        (BADLY, seen(CANCELLED), Verdict(FAILED, "it was cancelled")),
        (
            BADLY,
            seen(JobState(FAILED, "says FAILED")),
            Verdict(FAILED, "exit status 143 (SIGTERM)"),
        ),
        (BADLY, seen(JobState(RUNNING)), None),
        (BADLY, seen(None), None),
        (BADLY, seen(None, silence="down"), Verdict(FAILED, "exit status 143 (SIGTERM)")),
        # without a word of its end
        (STARTED, None, None),
        (STARTED, seen(JobState(RUNNING)), None),
        (STARTED, seen(JobState(SUCCESS)), Verdict(SUCCESS)),
        (STARTED, seen(CANCELLED), Verdict(FAILED, "it was cancelled")),
        (Witness(), seen(JobState(STUCK, "never")), Verdict(FAILED, "never")),
        # a job that nobody knows
        (STARTED, seen(None, GONE_S - 1), None),
        # a scheduler that does not answer
        (STARTED, seen(None, GONE_S + 1, "down"), None),
    ],
)
def test_a_verdict(word: Witness, answer: Seen | None, verdict: Verdict | None) -> None:
    assert judge(word, answer, NOW, POLL) == verdict


def test_why_it_failed_is_not_waited_for_without_end() -> None:
    word = Witness("7", NOW - 100, (), 3, NOW - 30)
    assert judge(word, seen(JobState(RUNNING)), NOW, POLL) == Verdict(FAILED, "exit status 3")


@pytest.mark.parametrize(("word", "told"), [(STARTED, "it had started"), (Witness(), "it never")])
def test_a_job_that_vanished_has_failed(word: Witness, told: str) -> None:
    verdict = judge(word, seen(None, GONE_S + 1), NOW, POLL)
    assert verdict
    assert verdict.word == FAILED
    assert told in verdict.reason


def test_a_scheduler_that_stays_silent_is_not_waited_for_without_end() -> None:
    verdict = judge(STARTED, seen(None, SILENCE_S + 1, "qstat: no route"), NOW, POLL)
    assert verdict == Verdict(FAILED, "the scheduler does not answer for an hour: qstat: no route")
