"""Fujitsu Technical Computing Suite (Oakforest-PACS). Sources: pjsub(1), pjstat(1), pjdel(1).

Ended jobs are told by ``pjstat -H`` alone; their state EXT says nothing of success: EC is the exit
code of the script, PC what the system did.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from burstlab.scheduler.interface import (
    FAILED,
    RUNNING,
    Answer,
    JobState,
    SchedulerError,
    Submission,
    clock,
    exited,
    no_answer,
)

_COLUMNS = ("jid", "jnam", "st", "ec", "pc")
_TABLE = ["pjstat", "-s", "-E", "--data", f"--choose={','.join(_COLUMNS)}"]
_OVER = ("EXT", "CCL", "ERR", "RJT")
_PJM_CODES = {
    1: "it was cancelled",
    11: "it ran out of time",
    12: "it used too much memory",
    20: "a node of it was lost",
    26: "its prologue or epilogue failed",
}
_STATES = {"CCL": "it was cancelled", "ERR": "it broke off", "RJT": "it was refused"}


def submission(job: Submission, script: Path) -> list[str]:
    """See interface."""
    asked = ["-N", job.name, "--norestart", "-j", "-o", str(job.log)]
    limits = ["-L", f"node={job.nodes}", "-L", f"elapse={clock(job.runtime_min)}"]
    return ["pjsub", *asked, *limits, *job.words, str(script)]


def submitted(answer: Answer) -> str:
    """``[INFO] PJM 0000 pjsub Job 167661 submitted.``; the exit status may be 0 without it."""
    found = re.search(r"pjsub Job (\d+) submitted", answer.stdout + answer.stderr)
    if not found:
        raise no_answer("pjsub", answer)
    return found[1]


def query(ids: Iterable[str]) -> list[str]:
    """See interface."""
    return [*_TABLE, *ids]


def states(answer: Answer) -> Mapping[str, JobState]:
    """See interface."""
    return {row["jid"]: _state(row) for row in _rows(answer)}


def history(ids: Iterable[str]) -> list[list[str]]:
    """The year's ended jobs."""
    return [[*_TABLE, "-H", "day=365", *ids]]


past = states


def named(name: str) -> list[str]:
    """All jobs of this user that are not over."""
    return list(_TABLE)


def ids_named(answer: Answer, name: str) -> list[str]:
    """See interface."""
    rows = _rows(answer)
    return [r["jid"] for r in rows if r["jnam"] == name and r["st"] not in _OVER]


def cancellation(ids: Iterable[str]) -> list[str]:
    """See interface."""
    return ["pjdel", *ids]


def _rows(answer: Answer) -> list[dict[str, str]]:
    """Lines beginning with H name the columns; an unknown job has no line at all."""
    if answer.status != 0 or "[ERR.]" in answer.stderr:
        raise no_answer("pjstat", answer)
    lines = list(csv.reader(answer.stdout.splitlines()))
    if not any(line[:1] == ["H"] for line in lines):
        raise SchedulerError(f"pjstat: no table: {answer.words()}")
    return [dict(zip(_COLUMNS, line[1:], strict=False)) for line in lines
            if line[:1] == [""] and len(line) > len(_COLUMNS)]  # fmt: skip


def _state(row: Mapping[str, str]) -> JobState:
    if row["st"] not in _OVER:
        return JobState(RUNNING)
    code, status = _number(row["pc"]), _number(row["ec"])
    if code:
        reason = _PJM_CODES.get(code, "the system ended it")
        return JobState(FAILED, f"{reason} (PJM code {code}, state {row['st']})", True)
    if row["st"] in _STATES:
        return JobState(FAILED, f"{_STATES[row['st']]} (state {row['st']})", True)
    if status is None:
        return JobState(FAILED, "its exit code is not told (state EXT)")
    return exited(status)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d+", text.strip()) else None
