"""Whether a job is over, how it ended and why: from its own word first, then the scheduler's.

Nothing is waited for without end: a job that the scheduler does not know any more has failed
after GONE_S, and so have all of them when it does not answer for SILENCE_S.
"""

import signal
from dataclasses import dataclass

from burstlab.scheduler.answers import Seen
from burstlab.scheduler.interface import FAILED, RUNNING, STUCK, SUCCESS
from burstlab.scheduler.script import Witness

SETTLE_S = 10.0  # a job that failed: for so long the scheduler may tell why
GONE_S = 30.0  # a job's last word, or its entry in the accounting, may come late
SILENCE_S = 3600.0


@dataclass(frozen=True)
class Verdict:
    """``word`` is success or failed."""

    word: str
    reason: str = ""


def judge(word: Witness, seen: Seen | None, now_s: float, poll_s: float) -> Verdict | None:
    """None: it is not over, or that is not known yet. Times are Unix times."""
    if word.exit_status == 0:
        return Verdict(SUCCESS)
    state = seen.state if seen else None
    if word.exit_status is not None:
        if state and state.phase == FAILED and state.outer:
            return Verdict(FAILED, state.reason)
        waits = state is None or state.phase == RUNNING
        if (
            waits
            and not (seen and seen.silence)
            and now_s - (word.end_s or 0.0) < SETTLE_S + poll_s
        ):
            return None
        return Verdict(FAILED, _exit(word.exit_status))
    if seen is None:
        return None
    if state is None:
        return _unknown(seen, word, now_s)
    if state.phase == SUCCESS:
        return Verdict(SUCCESS)
    if state.phase in (FAILED, STUCK):
        return Verdict(FAILED, state.reason)
    return None


def _unknown(seen: Seen, word: Witness, now_s: float) -> Verdict | None:
    if seen.silence:
        if now_s - seen.since_s < SILENCE_S:
            return None
        return Verdict(FAILED, f"the scheduler does not answer for an hour: {seen.silence}")
    if now_s - seen.since_s < GONE_S:
        return None
    when = "it had started" if word.start_s is not None else "it never started"
    return Verdict(FAILED, f"it vanished: the scheduler knows no such job, and {when}")


def _exit(status: int) -> str:
    if 128 < status < 128 + signal.NSIG:
        number = status - 128
        names = {one.value: one.name for one in signal.Signals}
        return f"exit status {status} ({names.get(number, f'signal {number}')})"
    return f"exit status {status}"
