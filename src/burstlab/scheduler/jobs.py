"""What is known of the jobs of a checkout: one directory for each cell, below ``.burstlab/jobs``.

    .burstlab/jobs/bl-3f9a12c07b4e/   lock, job.json, and of its last submission N:
                                      N.sh, N.start, N.exit (burstlab.scheduler.script), N.log
    .burstlab/jobs/ids/33.head        link to the directory of the job with that id
    .burstlab/jobs/open/33.head       the same, as long as its end has not been told

The name of the directory comes from the path of what the job makes, and is the job's name for the
scheduler too: so a cell finds its job again, whoever asks and whatever was lost.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from burstlab.scheduler.interface import SchedulerError

JOBS = Path(".burstlab/jobs")
LOCK_LIMIT_S = 150.0  # longer than a scheduler's command may take


@dataclass(frozen=True)
class Job:
    """One submission for a cell; the last one is kept."""

    name: str
    target: str  # first file that it makes, relative to the checkout
    scheduler: str
    attempt: int  # number of the submission, from 1
    submitted_s: float  # Unix time
    poll_s: float  # how often the scheduler may be asked
    conditions: str  # digest of what it was to run
    labels: tuple[str, ...] = ()  # words of `burstlab run`, of a cell
    id: str = ""  # empty while it is being submitted
    cancelled_s: float = 0.0  # when `burstlab cancel` was called
    verdict: str = ""  # success or failed, once that was told
    reason: str = ""

    def file(self, kind: str) -> Path:
        """Of this submission: sh, start, exit, log."""
        return JOBS / self.name / f"{self.attempt}.{kind}"


def job_name(target: str) -> str:
    """15 characters, as old PBS allows, that differ between checkouts and between cells."""
    text = f"{Path.cwd()}\0{target}"
    return f"bl-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def read(name: str) -> Job | None:
    """The last submission for a cell."""
    try:
        values = json.loads((JOBS / name / "job.json").read_text())
    except FileNotFoundError:
        return None
    return Job(**{**values, "labels": tuple(values["labels"])})


def find(identifier: str) -> Job | None:
    """The job with an id, if it is the last one of its cell."""
    try:
        job = read((JOBS / "ids" / _link_name(identifier)).readlink().name)
    except FileNotFoundError:
        return None
    return job if job and job.id == identifier else None


def write(job: Job) -> None:
    """Note a submission, complete or not at all, and where its id leads to."""
    path = JOBS / job.name / "job.json"
    partial = path.with_suffix(".partial")
    with partial.open("w") as out:
        json.dump(asdict(job), out, indent=1)
        out.flush()
        os.fsync(out.fileno())
    partial.rename(path)
    if job.id:
        _link(job, "ids")
        if job.verdict:
            close(job)
        else:
            _link(job, "open")


def close(job: Job) -> None:
    """Ask for this job no more."""
    if job.id:
        (JOBS / "open" / _link_name(job.id)).unlink(missing_ok=True)


def open_jobs() -> list[Job]:
    """All jobs whose end has not been told."""
    try:
        names = sorted(link.name for link in (JOBS / "open").iterdir())
    except FileNotFoundError:
        return []
    return [job for name in names if (job := find(name)) and not job.verdict]


@contextmanager
def locked(name: str) -> Iterator[int]:
    """Hold the lock ``JOBS/name``; gives its descriptor, and ends with the process that holds it.

    A command that is given the descriptor keeps the lock when this process is killed. Raises
    SchedulerError when another holds it for too long.
    """
    path = JOBS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        deadline = time.monotonic() + LOCK_LIMIT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SchedulerError(
                        f"{path}: held by another process for {LOCK_LIMIT_S:.0f} s"
                    ) from None
                time.sleep(0.02)
        yield lock.fileno()


def _link(job: Job, kind: str) -> None:
    link = JOBS / kind / _link_name(job.id)
    link.parent.mkdir(exist_ok=True)
    partial = link.with_name(f".{link.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(Path("..", job.name))
    partial.rename(link)


def _link_name(identifier: str) -> str:
    return identifier.replace("/", "_")
