"""PBS Professional and OpenPBS. Sources: qsub(1), qstat(1); captures of OpenPBS 23.06.06.

What its JSON is worth: numbers and words in the environment of a job are printed bare, so one odd
variable makes all of it invalid. It is read line by line here, and only attributes of the job.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from burstlab.scheduler.interface import (
    FAILED,
    RUNNING,
    STUCK,
    Answer,
    JobState,
    Submission,
    clock,
    exited,
    no_answer,
)

# Exit status of a job that PBS ended itself (job.h); 256 + n: killed by signal n
_ENDED = {
    -1: "it could not be started",
    -2: "it could not be started",
    -3: "it could not be started",
    -11: "it was to be run again",
    -20: "its first node was lost",
    -24: "it used too many cores",
    -25: "it used too much virtual memory",
    -26: "it used too much virtual memory",
    -27: "it used too much memory",
    -28: "it used too much processor time",
    -29: "it ran out of time",
}
_OPENING = re.compile(r'^\s*"(.*)":\s*\{$')
_VALUE = re.compile(r'^\s*"(\w+)":\s*(.*?),?$')
_NOBODY_KNOWS = re.compile(r"Unknown Job Id|Job has finished|not configured to maintain")


def submission(job: Submission, script: Path) -> list[str]:
    """``-r n``: PBS would run a job again whose node was lost, and measure twice."""
    asked = ["-N", job.name, "-r", "n", "-j", "oe", "-o", str(job.log)]
    limits = ["-l", f"select={job.nodes}", "-l", f"walltime={clock(job.runtime_min)}"]
    return ["qsub", *asked, *limits, *job.words, str(script)]


def submitted(answer: Answer) -> str:
    """``0.head``, ``2079312.pbs1``."""
    job = answer.stdout.strip()
    if answer.status != 0 or not re.fullmatch(r"\d+(\.\S+)?", job):
        raise no_answer("qsub", answer)
    return job


def query(ids: Iterable[str]) -> list[str]:
    """Jobs that are over too, if the server keeps a history."""
    return ["qstat", "-x", "-f", "-F", "json", *ids]


def states(answer: Answer) -> Mapping[str, JobState]:
    """The exit status does not tell whether there was an answer: 0 without history, 35 and 153
    when one of the jobs is over or unknown."""
    found = _attributes(answer.stdout)
    if not found and answer.status != 0 and not _NOBODY_KNOWS.search(answer.stderr):
        raise no_answer("qstat", answer)
    return {job: _state(attributes) for job, attributes in found.items()}


def history(ids: Iterable[str]) -> list[list[str]]:
    """Without history even running jobs are told only without ``-x``."""
    return [["qstat", "-f", "-F", "json", *ids]]


past = states


def named(name: str) -> list[str]:
    """Prints ids only, of jobs that are not over."""
    return ["qselect", "-N", name]


def ids_named(answer: Answer, name: str) -> list[str]:
    """See interface."""
    if answer.status != 0:
        raise no_answer("qselect", answer)
    return answer.stdout.split()


def cancellation(ids: Iterable[str]) -> list[str]:
    """See interface."""
    return ["qdel", *ids]


def _attributes(text: str) -> dict[str, dict[str, str]]:
    """Attributes of each job; not what lies deeper, as its environment and resources do."""
    jobs: dict[str, dict[str, str]] = {}
    path: list[str] = []
    for line in text.splitlines():
        if opening := _OPENING.match(line):
            path.append(opening[1])
            if path[0] == "Jobs" and len(path) == 2:
                jobs[path[1]] = {}
        elif line.strip() in ("}", "},") and path:
            path.pop()
        elif len(path) == 2 and path[0] == "Jobs" and (value := _VALUE.match(line)):
            jobs[path[1]][value[1]] = value[2].strip('"')
    return jobs


def _state(job: Mapping[str, str]) -> JobState:
    """By job_state first: a job that waits again after its node was lost has an exit status."""
    comment = job.get("comment", "")
    if job.get("job_state") != "F":
        if "Can Never Run" in comment:
            return JobState(STUCK, f"it can never start (PBS says: {comment})", True)
        return JobState(RUNNING, comment if job.get("job_state") in ("Q", "H") else "")
    hosts = tuple(dict.fromkeys(re.findall(r"([^/+]+)/[^+]+", job.get("exec_host", ""))))
    if not re.fullmatch(r"-?\d+", told := job.get("Exit_status", "")):
        return JobState(FAILED, f"it was deleted before it ran (PBS says: {comment})", True, hosts)
    status = int(told)
    if status in _ENDED:
        return JobState(FAILED, f"{_ENDED[status]} (PBS exit status {status})", True, hosts)
    if "terminated by" in comment:
        who = comment.rpartition("terminated by ")[2]
        return JobState(
            FAILED, f"it was cancelled by {who} (PBS exit status {status})", True, hosts
        )
    ended = exited(status)
    return JobState(ended.phase, ended.reason, hosts=hosts)
