"""Submits the job of a cell, unless it has one already.

Before the scheduler is called it is noted that it will be; afterwards, the id it gave. The lock of
the cell is held by the scheduler's command too. So when a submission was killed in between, the
next one comes after that command ended, and asks the scheduler for the job by its name.
"""

import dataclasses
import hashlib
import json
import os
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from burstlab.errors import ConfigurationError
from burstlab.scheduler import jobs, script
from burstlab.scheduler import scheduler as module_of
from burstlab.scheduler.answers import state_now
from burstlab.scheduler.asking import ask
from burstlab.scheduler.interface import RUNNING, STUCK, SUCCESS, SchedulerError, Submission
from burstlab.scheduler.jobs import Job

ENDING_LIMIT_S = 60.0


@dataclass(frozen=True)
class Facts:
    """What the site says of submitting (``burstlab.config.site.Site``)."""

    scheduler: str
    submit: tuple[str, ...]
    submit_for: Mapping[str, tuple[str, ...]]  # by storage
    poll_s: float


def site_facts(site: str) -> Facts:
    """From config/sites/SITE.yaml, which Snakemake's driver has checked: no pydantic here, its
    import alone would be a third of the time a submission takes."""
    import yaml

    path = Path("config/sites") / f"{site}.yaml"
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise ConfigurationError(f"there is no {path} in {Path.cwd()}") from None
    values = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return Facts(
        scheduler=values.get("scheduler", "none"),
        submit=tuple(values.get("submit", ())),
        submit_for={name: tuple(some) for name, some in values.get("submit_for", {}).items()},
        poll_s=float(values.get("poll_s", 10.0)),
    )


def submit(facts: Facts, jobscript: Path) -> str:
    """The id of the cell's job: one that is queued or running, else a new one.

    Raises SchedulerError when the scheduler refuses, or can't tell what became of the last one.
    """
    text = jobscript.read_text()
    properties = _properties(text, jobscript)
    target = str(properties["output"][0])
    name = jobs.job_name(target)
    with jobs.locked(f"{name}/lock") as lock:
        conditions = _conditions(properties)
        last = jobs.read(name)
        if last and not last.verdict:
            if there := _still_there(last, conditions):
                return there.id
            jobs.close(last)
        new = Job(
            name=name,
            target=target,
            scheduler=facts.scheduler,
            attempt=last.attempt + 1 if last else 1,
            submitted_s=time.time(),
            poll_s=facts.poll_s,
            conditions=conditions,
            labels=_labels(properties),
        )
        return _submit(new, facts, properties["resources"], text, lock)


def _submit(job: Job, facts: Facts, resources: Mapping[str, Any], text: str, lock: int) -> str:
    nodes, runtime = int(resources.get("nodes", 1)), int(resources.get("runtime", 60))
    path = script.write(job, text)
    jobs.write(job)
    module = module_of(facts.scheduler)
    storage = dict(pairwise(job.labels)).get("--storage", "")
    words = (*facts.submit, *facts.submit_for.get(storage, ()))
    submission = Submission(
        name=job.name,
        nodes=nodes,
        runtime_min=runtime,
        log=Path.cwd() / job.file("log"),
        comment=job.target,
        words=tuple(_expanded(word, nodes) for word in words),
    )
    answer = ask(module.submission(submission, path), held=[lock])
    try:
        identifier = module.submitted(answer)
    except SchedulerError as error:
        # It was refused, so the next submission need not look for this job.
        jobs.write(dataclasses.replace(job, verdict="failed", reason=str(error)))
        raise
    jobs.write(dataclasses.replace(job, id=identifier))
    return identifier


def _still_there(job: Job, conditions: str) -> Job | None:
    """The job if it is queued, runs, or ended well without anybody having been told.

    Raises SchedulerError when one is queued or runs that was submitted under other conditions.
    """
    module = module_of(job.scheduler)
    if not job.id:
        named = module.ids_named(ask(module.named(job.name)), job.name)
        word = script.witness(job)
        ran = word.id.rpartition(":")[2]  # NQSV's jobs see 0:949571.nqsv
        if not named and not (ran and word.exit_status == 0):
            return None
        job = dataclasses.replace(job, id=named[0] if named else ran)
        jobs.write(job)
    status = script.witness(job).exit_status
    if status is not None:
        well = status == 0 and Path(job.target).exists() and job.conditions == conditions
        return job if well else None
    state = state_now(job)
    deadline = time.monotonic() + ENDING_LIMIT_S
    while job.cancelled_s and state and state.phase == RUNNING:
        if time.monotonic() > deadline:
            raise SchedulerError(f"job {job.id} was cancelled and is still there: try again later")
        time.sleep(0.5)
        state = state_now(job)
    if not state or state.phase not in (RUNNING, STUCK, SUCCESS):
        return None
    if job.conditions != conditions:
        raise SchedulerError(
            f"job {job.id} of {job.target} was submitted under other conditions and is not over: "
            f"wait for it, or `burstlab cancel {job.id}`"
        )
    return job


def _properties(text: str, jobscript: Path) -> dict[str, Any]:
    found = re.search(r"^# properties = (\{.*\})$", text, re.MULTILINE)
    properties: dict[str, Any] = json.loads(found[1]) if found else {}
    if not properties.get("output"):
        raise ConfigurationError(f"{jobscript}: no script of a Snakemake job that makes a file")
    return properties


def _conditions(properties: Mapping[str, Any]) -> str:
    """Digest of what the job runs; directories of temporary files change with every Snakemake."""
    told = {name: properties.get(name) for name in ("rule", "params")}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _labels(properties: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(shlex.split(str(properties.get("params", {}).get("run", ""))))


def _expanded(word: str, nodes: int) -> str:
    """A word of the site with the number of nodes and the submitter's variables in it."""
    text = os.path.expandvars(word.replace("{nodes}", str(nodes)))
    if missing := re.search(r"\$\{?(\w+)", text):
        raise ConfigurationError(
            f"the site's `submit` has {word}: set {missing[1]} in the environment"
        )
    return text
