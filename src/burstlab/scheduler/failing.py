"""Records a failure that the cell could not record itself: its node, or all of it, was killed."""

import os
import time
from itertools import pairwise
from pathlib import Path

from burstlab import record
from burstlab.record import CellKey, Record
from burstlab.scheduler.jobs import Job
from burstlab.scheduler.script import Witness

EXIT_STATUS = 125  # burstlab's own failure (docs/reference.md)
KEY = ("experiment", "scale", "workload", "dataset", "repeat")


def record_failure(job: Job, word: Witness, reason: str) -> Path | None:
    """Write failed.json where the cell's record would be, unless the cell wrote one by itself.

    Returns the path if one was written.
    """
    target = Path(job.target)
    if target.name != "record.json" or not target.parent.is_dir():
        return None
    for name in ("record.json", "failed.json"):
        path = target.parent / name
        if path.exists() and path.stat().st_mtime >= job.submitted_s:
            return None
    started = time.localtime(word.start_s or job.submitted_s)
    failure = Record(
        status="failed",
        reason=f"job {job.id}: {reason}",
        exit_status=word.exit_status or EXIT_STATUS,
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
    own = {name: labels.pop(name, "") for name in KEY}
    return CellKey(
        id=f"job-{job.id}",
        experiment=own["experiment"],
        scale=own["scale"],
        workload=own["workload"],
        storage=flags.get("--storage", ""),
        staging=flags.get("--staging", "none"),
        dataset=own["dataset"],
        nodes=int(flags.get("--nodes", "1")),
        parameters=labels,
        repeat=int(own["repeat"] or 1),
    )
