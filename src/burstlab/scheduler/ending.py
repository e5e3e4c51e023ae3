"""Why the scheduler ends the job that this process runs in, asked while it does.

Only Slurm tells: by then it has noted why, and goes on answering until the job is over. The others
tell a signal, and the rest when there is no job any more (burstlab.scheduler.verdict). Source:
scontrol(1) and sinfo(1) of 22.05, seen on a lab.
"""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from burstlab.scheduler.asking import ask
from burstlab.scheduler.interface import SchedulerError

PATIENCE_S = 3  # a job has 30 s (KillWait) to write its record
_ENDED = (
    *("COMPLETING", "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"),
    *("OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL"),
)
_VARIABLES = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST")
_CAUSES = {  # reason of a job that is being ended -> what its user knows it by
    "TimeLimit": "the job's time limit",
    "None": "cancelled (scancel)",
}


@dataclass(frozen=True)
class Ending:
    """Why a job is being ended: a cause in words, or hosts that it has lost."""

    cause: str = ""
    lost: Mapping[str, str] | None = None  # host -> what the scheduler says of it


def job_of(environment: Mapping[str, str]) -> dict[str, str]:
    """What ``ending`` wants to know of a job, for a process that has another environment."""
    return {name: environment[name] for name in _VARIABLES if name in environment}


def ending(environment: Mapping[str, str] = os.environ, patience_s: float = 0.0) -> Ending | None:
    """None outside of a job of Slurm, in a job that goes on, and when Slurm does not answer.

    ``patience_s``: ask again for so long, where something else says that the job is being ended.
    """
    if len(job_of(environment)) < len(_VARIABLES):
        return None
    job, hosts = (environment[name] for name in _VARIABLES)
    deadline = time.monotonic() + patience_s
    while (told := _told(job)).get("JobState") not in _ENDED:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.1)
    reason, preempted = told.get("Reason", ""), told.get("PreemptTime", "None")
    if reason == "NodeDown":
        lost = _down(_said("sinfo", "--noheader", "-N", "-n", hosts, "-o", "%N %T"))
        return Ending("a node of it was lost", lost or None)
    if preempted != "None":
        return Ending(cause="preempted")
    return Ending(cause=_CAUSES.get(reason, f"Slurm says {reason}"))


def _told(job: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S*)", _said("scontrol", "--oneliner", "show", "job", job)))


def _down(text: str) -> dict[str, str]:
    """Of lines of host and state; ``down*`` is a host that does not answer Slurm either."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2 and row[1].startswith("down")}


def _said(*words: str) -> str:
    try:
        return ask(["timeout", str(PATIENCE_S), *words]).stdout
    except SchedulerError:
        return ""
