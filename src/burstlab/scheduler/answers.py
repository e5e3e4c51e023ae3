"""One answer of a scheduler for all jobs and all who ask, kept for a polling interval."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from burstlab.scheduler import jobs
from burstlab.scheduler import scheduler as module_of
from burstlab.scheduler.asking import ask
from burstlab.scheduler.interface import JobState, SchedulerError
from burstlab.scheduler.jobs import JOBS, Job


@dataclass(frozen=True)
class Seen:
    """What is known of one job.

    ``state`` is None when the scheduler does not know it, since ``since_s`` (Unix time), or did
    not answer at all since then, which ``silence`` tells.
    """

    state: JobState | None
    since_s: float
    silence: str = ""


def seen(job: Job) -> Seen | None:
    """From the last answer if it is recent, else from a new one; None: not asked since it was
    submitted."""
    name = f"answer-{job.scheduler}.json"
    answer = _read(name)
    if time.time() - float(answer.get("asked_s", 0.0)) >= job.poll_s:
        with jobs.locked("answers.lock"):
            answer = _read(name)
            if time.time() - float(answer.get("asked_s", 0.0)) >= job.poll_s:
                answer = _asked_again(job.scheduler, answer)
                _write(name, answer)
    known = answer["jobs"].get(job.id)
    if known is None:
        return None
    state = known["state"]
    if state is not None:
        state = JobState(**{**state, "hosts": tuple(state["hosts"])})
    return Seen(state, known["since_s"], answer["silence"])


def state_now(job: Job) -> JobState | None:
    """Asked for this job alone, right now. Raises SchedulerError when there is no answer."""
    return _states(job.scheduler, [job.id]).get(job.id)


def _asked_again(scheduler: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """The time is taken before asking: a job submitted meanwhile may be missing in the answer."""
    asked, was = time.time(), before.get("jobs", {})
    ids = [job.id for job in jobs.open_jobs() if job.scheduler == scheduler]
    silence = ""
    states: Mapping[str, JobState] = {}
    try:
        states = _states(scheduler, ids)
    except SchedulerError as error:
        silence = str(error)
    now = {}
    for job in ids:
        state = states.get(job)
        same = job in was and state is None and was[job]["state"] is None
        since = was[job]["since_s"] if same and before.get("silence") == silence else asked
        now[job] = {"state": asdict(state) if state else None, "since_s": since}
    return {"asked_s": asked, "silence": silence, "jobs": now}


def _states(scheduler: str, ids: list[str]) -> Mapping[str, JobState]:
    if not ids:
        return {}
    module = module_of(scheduler)
    states = dict(module.states(ask(module.query(ids))))
    if absent := [job for job in ids if job not in states]:
        for argv in module.history(absent):
            for job, state in module.past(ask(argv)).items():
                states.setdefault(job, state)
    return states


def _read(name: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads((JOBS / name).read_text())
    except FileNotFoundError:
        return {}
    return answer


def _write(name: str, answer: Mapping[str, Any]) -> None:
    path = JOBS / name
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(answer))
    partial.rename(path)
