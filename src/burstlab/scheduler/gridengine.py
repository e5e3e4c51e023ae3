"""Grid Engine: Son of (8.1.9), Univa, Altair. Sources: qsub(1), qstat(1), qacct(1), accounting(5).

How many nodes a job gets is the site's word: ``-pe NAME N``, ``-l rt_F=N``, ``-l node_f=N``.
qstat forgets a job the moment it ends; the accounting knows it seconds later.
"""

import os
import pwd
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

from burstlab.scheduler.interface import (
    FAILED,
    RUNNING,
    STUCK,
    Answer,
    JobState,
    SchedulerError,
    Submission,
    clock,
    exited,
    no_answer,
)

# `failed` of accounting(5): why a job did not end by itself
_FAILED = {
    "37": "it ran out of time, or exceeded another limit",
    "100": "it was cancelled, or killed from outside",
}


def submission(job: Submission, script: Path) -> list[str]:
    """``-terse``: the bare id is printed. ``-notify``: SIGUSR2 comes before SIGKILL, which would
    leave what the job has on its hosts (qsub(1); queue_conf(5) says how long before).
    """
    asked = ["-N", job.name, "-r", "n", "-notify", "-j", "y", "-o", str(job.log), "-S", "/bin/bash"]
    limit = ["-l", f"h_rt={clock(job.runtime_min)}"]
    return ["qsub", "-terse", *asked, *limit, *job.words, str(script)]


def submitted(answer: Answer) -> str:
    """Warnings may stand before the id."""
    job = answer.stdout.strip().splitlines()[-1:]
    if answer.status != 0 or not job or not job[0].isdigit():
        raise no_answer("qsub", answer)
    return job[0]


def query(ids: Iterable[str]) -> list[str]:
    """All jobs of this user by the queues they run in, as only a queue tells that it is lost."""
    user = pwd.getpwuid(os.getuid()).pw_name
    return ["qstat", "-f", "-g", "t", "-xml", "-u", user]


def states(answer: Answer) -> Mapping[str, JobState]:
    """See interface."""
    found: dict[str, JobState] = {}
    for job, queue in _jobs(answer):
        number, state = _text(job, "JB_job_number"), _text(job, "state")
        node = _text(queue, "name").partition("@")[2] if queue is not None else ""
        before = found[number].hosts if number in found else ()
        hosts = tuple(dict.fromkeys([*before, node] if node else before))
        lost = queue is not None and "u" in _text(queue, "state")
        if "E" in state:
            why = JobState(STUCK, f"Grid Engine holds it in error (state {state})", True, hosts)
        elif lost:
            why = JobState(STUCK, f"its node {node} was lost (queue unreachable)", True, hosts)
        elif number in found and found[number].phase == STUCK:
            continue
        else:
            why = JobState(RUNNING, hosts=hosts)
        found[number] = why
    return found


def history(ids: Iterable[str]) -> list[list[str]]:
    """qacct takes one job at a time."""
    return [["qacct", "-j", job] for job in ids]


def past(answer: Answer) -> Mapping[str, JobState]:
    """See interface. With several entries of one job, the last is the master's."""
    if "not found" in answer.stderr or "no such file" in answer.stderr.lower():
        return {}
    if answer.status != 0:
        raise no_answer("qacct", answer)
    entry = dict(re.findall(r"^(\w+) +(.*?) *$", answer.stdout, re.MULTILINE))
    if "jobnumber" not in entry:
        return {}
    failed, status = entry["failed"].split()[0], int(entry["exit_status"].split()[0])
    told = f"Grid Engine says failed {' '.join(entry['failed'].split())}"
    hosts = (entry["hostname"],) if entry.get("hostname", "").strip() else ()
    if failed == "0":
        ended = exited(status)
        return {entry["jobnumber"]: JobState(ended.phase, ended.reason, hosts=hosts)}
    reason = _FAILED.get(failed, "it could not be run")
    return {entry["jobnumber"]: JobState(FAILED, f"{reason} ({told})", True, hosts)}


def named(name: str) -> list[str]:
    """The same: in XML names are not cut."""
    return query(())


def ids_named(answer: Answer, name: str) -> list[str]:
    """See interface."""
    jobs = (job for job, _ in _jobs(answer) if _text(job, "JB_name") == name)
    return list(dict.fromkeys(_text(job, "JB_job_number") for job in jobs))


def cancellation(ids: Iterable[str]) -> list[str]:
    """See interface."""
    return ["qdel", *ids]


Element = ElementTree.Element


def _jobs(answer: Answer) -> list[tuple[Element, Element | None]]:
    """Each job, with the queue it runs in."""
    if answer.status != 0:
        raise no_answer("qstat", answer)
    try:
        root = ElementTree.fromstring(answer.stdout)
    except ElementTree.ParseError as error:
        raise SchedulerError(f"qstat: no XML: {error}") from error
    queues = root.findall("./queue_info/Queue-List")
    running = [(job, queue) for queue in queues for job in queue.findall("job_list")]
    return [*running, *((job, None) for job in root.findall("./job_info/job_list"))]


def _text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()
