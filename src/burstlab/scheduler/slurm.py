"""Slurm. Sources: sbatch(1), squeue(1), sacct(1), scancel(1) of 22.05, seen on real clusters.

squeue tells ended jobs for MinJobAge (300 s by default); sacct, where there is accounting, later.
``sacct`` says "CANCELLED by UID".
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from burstlab.scheduler.interface import (
    FAILED,
    RUNNING,
    STUCK,
    SUCCESS,
    Answer,
    JobState,
    Submission,
    no_answer,
)

_ENDED = {  # states of ended jobs (squeue(1), JOB STATE CODES) -> reason
    "BOOT_FAIL": "its node did not boot",
    "CANCELLED": "it was cancelled",
    "DEADLINE": "it missed its deadline",
    "NODE_FAIL": "a node of it was lost",
    "OUT_OF_MEMORY": "it ran out of memory",
    "PREEMPTED": "it was preempted",
    "REVOKED": "it was revoked",
    "TIMEOUT": "it ran out of time",
}
_NEVER = (
    "DependencyNeverSatisfied",
    "PartitionConfig",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
)
_COLUMNS = "%i|%T|%r|%N|%j"


def submission(job: Submission, script: Path) -> list[str]:
    """See interface."""
    return [
        "sbatch",
        "--parsable",
        "--no-requeue",
        f"--job-name={job.name}",
        f"--comment={job.comment}",
        f"--nodes={job.nodes}",
        f"--time={job.runtime_min}",
        f"--output={job.log}",
        *job.words,
        str(script),
    ]


def submitted(answer: Answer) -> str:
    """``ID`` or ``ID;CLUSTER``."""
    job = answer.stdout.strip().partition(";")[0]
    if answer.status != 0 or not job.isdigit():
        raise no_answer("sbatch", answer)
    return job


def query(ids: Iterable[str]) -> list[str]:
    """All jobs of this user: with ``--jobs``, one forgotten id would hide all others."""
    return [*_squeue(), "--states=all"]


def states(answer: Answer) -> Mapping[str, JobState]:
    """See interface."""
    return {row[0]: _state(row[1], row[2], row[3]) for row in _rows(answer, "squeue")}


def history(ids: Iterable[str]) -> list[list[str]]:
    """Asks the accounting, which not every cluster has."""
    columns = "--format=JobIDRaw,State,Reason,NodeList,JobName"
    return [["sacct", "--allocations", "--noheader", "--parsable2", columns, "-j", ",".join(ids)]]


def past(answer: Answer) -> Mapping[str, JobState]:
    """See interface."""
    if "accounting storage is disabled" in answer.stderr:
        return {}
    return {row[0]: _state(row[1], row[2], row[3]) for row in _rows(answer, "sacct")}


def named(name: str) -> list[str]:
    """See interface."""
    return [*_squeue(), f"--name={name}"]


def ids_named(answer: Answer, name: str) -> list[str]:
    """Without ``--states``, squeue tells only jobs that are not over."""
    return [row[0] for row in _rows(answer, "squeue") if row[4] == name]


def cancellation(ids: Iterable[str]) -> list[str]:
    """See interface."""
    return ["scancel", *ids]


def _squeue() -> list[str]:
    return ["squeue", "--noheader", f"--user={os.getuid()}", f"--format={_COLUMNS}"]


def _rows(answer: Answer, command: str) -> list[list[str]]:
    if answer.status != 0:
        raise no_answer(command, answer)
    rows = [line.strip().split("|", 4) for line in answer.stdout.splitlines() if line.strip()]
    return [row for row in rows if len(row) == 5]


def _state(told: str, why: str, nodes: str) -> JobState:
    state, hosts = told.split()[0].rstrip("+"), _hosts(nodes)
    if state == "COMPLETED":
        return JobState(SUCCESS, hosts=hosts)
    if state == "FAILED":
        return JobState(FAILED, "Slurm says FAILED", hosts=hosts)
    if state in _ENDED:
        return JobState(FAILED, f"{_ENDED[state]} (Slurm says {told})", True, hosts)
    if state == "PENDING" and why in _NEVER:
        return JobState(STUCK, f"it can never start (Slurm says {why})", True)
    return JobState(RUNNING, why if state == "PENDING" else "", hosts=hosts)


def _hosts(nodes: str) -> tuple[str, ...]:
    return () if nodes in ("", "None assigned") else (nodes,)
