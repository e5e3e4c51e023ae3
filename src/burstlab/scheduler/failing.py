"""Records a failure that the cell could not record itself: its node, or all of it, was killed."""

import os
import time
from itertools import pairwise
from pathlib import Path

from burstlab import record
from burstlab.errors import BurstlabError
from burstlab.record import CellKey, Record
from burstlab.scheduler.jobs import Job
from burstlab.scheduler.script import Witness


def record_failure(job: Job, word: Witness, reason: str) -> Path | None:
    """Write failed.json where the cell's record would be, unless the cell wrote one by itself.

    Returns the path if one was written.
    """
    target = Path(job.target)
    if target.name != "record.json" or not target.parent.is_dir():
        return None
    for name in record.FILES:
        path = target.parent / name
        if path.exists() and path.stat().st_mtime >= job.submitted_s:
            return None
    started = time.localtime(word.start_s or job.submitted_s)
    failure = Record(
        status="failed",
        reason=f"job {job.id}: {reason}",
        exit_status=word.exit_status or BurstlabError.exit_status,
        cell=_key(job),
        started=time.strftime("%Y-%m-%dT%H:%M:%S%z", started),
        hosts=word.hosts,
        provenance={"hostname": os.uname().nodename, "scheduler": {"name": job.scheduler,
                    "job": job.id, "submitted_s": job.submitted_s}},
    )  # fmt: skip
    return record.write(failure, target.parent)


def _key(job: Job) -> CellKey:
    """From the words of `burstlab run`."""
    pairs = list(pairwise(job.labels))
    flags = dict(pairs)
    labels = dict(text.split("=", 1) for flag, text in pairs if flag == "--label" and "=" in text)
    return CellKey.labelled(
        f"job-{job.id}",
        labels,
        storage=flags.get("--storage", ""),
        staging=flags.get("--staging", "none"),
        nodes=int(flags.get("--nodes", "1")),
        repeat=int(labels.get("repeat", "1")),
    )
