"""NEC NQSV (Cygnus, Pegasus). Sources: qsub(1), qstat(1); published captures of Pegasus, 2026.

qstat has exit status 0 whatever happens, and forgets a request 5 s after its end; its exit code
is told by ``qstat -J -f`` alone. So the word of the job itself is what counts here.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from burstlab.scheduler.interface import (
    FAILED,
    RUNNING,
    Answer,
    JobState,
    Submission,
    clock,
    no_answer,
)

_ABSENT = re.compile(r"Batch Request: \S+ does not exist|No such request")
_OVER = ("Exiting", "Exited", "Post-running")


def submission(job: Submission, script: Path) -> list[str]:
    """See interface."""
    asked = ["-N", job.name, "-r", "n", "-j", "o", "-o", str(job.log)]
    limits = ["-b", str(job.nodes), "-l", f"elapstim_req={clock(job.runtime_min)}"]
    return ["qsub", *asked, *limits, *job.words, str(script)]


def submitted(answer: Answer) -> str:
    """``Request 949571.nqsv submitted to queue: gen_S.``"""
    found = re.search(r"^Request (\S+) submitted to queue", answer.stdout, re.MULTILINE)
    if answer.status != 0 or not found:
        raise no_answer("qsub", answer)
    return found[1]


def query(ids: Iterable[str]) -> list[str]:
    """See interface."""
    return ["qstat", "-f", *ids]


def states(answer: Answer) -> Mapping[str, JobState]:
    """See interface."""
    return {request: _state(facts) for request, facts in _requests(answer).items()}


def history(ids: Iterable[str]) -> list[list[str]]:
    """Nothing that users may read."""
    return []


def past(answer: Answer) -> Mapping[str, JobState]:
    """See interface."""
    return {}


def named(name: str) -> list[str]:
    """All requests in full: the table cuts names to 8 characters."""
    return ["qstat", "-f"]


def ids_named(answer: Answer, name: str) -> list[str]:
    """See interface."""
    return [
        request
        for request, facts in _requests(answer).items()
        if facts.get("Request Name") == name and facts.get("Current State") not in _OVER
    ]


def cancellation(ids: Iterable[str]) -> list[str]:
    """See interface."""
    return ["qdel", *ids]


def _requests(answer: Answer) -> dict[str, dict[str, str]]:
    requests: dict[str, dict[str, str]] = {}
    facts: dict[str, str] = {}
    for line in answer.stdout.splitlines():
        if head := re.match(r"Request ID: (\S+)", line):
            facts = requests.setdefault(head[1], {})
        elif fact := re.match(r"    (\w[\w ]*?) *= (.*)$", line):
            facts.setdefault(fact[1], fact[2].strip())
    if not requests and (answer.status != 0 or not _ABSENT.search(answer.stdout)):
        if answer.status == 0 and not answer.stdout.strip() and not answer.stderr.strip():
            return {}
        raise no_answer("qstat", answer)
    return requests


def _state(facts: Mapping[str, str]) -> JobState:
    """A request that was deleted says so for its last seconds; one that ended says no more."""
    if facts.get("State Transition Reason") == "DELETE":
        return JobState(FAILED, "it was deleted, or ran out of time (NQSV says DELETE)", True)
    return JobState(RUNNING)
