"""`snakemake --scheduler interleaved`: cells in the order of burstlab.order, one after the other.

Jobs that are no cells (data sets, environments, figures) come first, as they become ready. The
name of this package is what Snakemake finds a scheduler plugin by.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

from snakemake_interface_scheduler_plugins.base import SchedulerBase
from snakemake_interface_scheduler_plugins.interfaces.jobs import JobSchedulerInterface
from snakemake_interface_scheduler_plugins.settings import SchedulerSettingsBase

from burstlab.order import interleaved
from burstlab.provenance import ORDER_SEED


@dataclass
class SchedulerSettings(SchedulerSettingsBase):
    """`--scheduler-interleaved-seed`."""

    seed: Optional[int] = field(  # noqa: UP045 (Snakemake reads the type, and knows this form only)
        default=None, metadata={"help": "Seed of the order of the cells (default: drawn)."}
    )


class Scheduler(SchedulerBase):
    """Takes the first jobs in the order that fit what is free; never a later cell before."""

    def __post_init__(self) -> None:
        seed = getattr(self.settings, "seed", None)
        if seed is None:  # in a job of a cluster: the seed of the Snakemake that submitted it
            seed = os.environ.get(ORDER_SEED) or int.from_bytes(os.urandom(4))
        self._seed = int(seed)
        self._place: dict[str, int] = {}
        os.environ[ORDER_SEED] = str(self._seed)  # what the jobs' records tell

    def select_jobs(
        self,
        selectable_jobs: Sequence[JobSchedulerInterface],
        remaining_jobs: Sequence[JobSchedulerInterface],
        available_resources: Mapping[str, int | str],
        input_sizes: object,
    ) -> list[JobSchedulerInterface]:
        """See SchedulerBase."""
        if not self._place:
            records = [path for job in remaining_jobs if (path := _record(job))]
            self._place = {path: i for i, path in enumerate(interleaved(records, self._seed))}
            self.logger.info(f"Order of cells: interleaved, seed {self._seed}")
        free = {name: int(value) for name, value in available_resources.items()}
        chosen = []
        for job in sorted(selectable_jobs, key=self._turn):
            if _takes(job, free):
                chosen.append(job)
            elif _record(job):
                break
        return chosen

    def _turn(self, job: JobSchedulerInterface) -> int:
        return self._place.get(_record(job), -1)


def _record(job: JobSchedulerInterface) -> str:
    """The record that a cell's job writes; empty for any other job."""
    outputs = [str(path) for path in getattr(job, "output", ())]
    return next((path for path in outputs if path.endswith("/record.json")), "")


def _takes(job: JobSchedulerInterface, free: dict[str, int]) -> bool:
    """Take what a job needs from what is free; False, and nothing taken, where it does not fit."""
    needs = {
        name: int(value)
        for name, value in job.scheduler_resources.items()
        if name in free and isinstance(value, int)
    }
    if any(value > free[name] for name, value in needs.items()):
        return False
    for name, value in needs.items():
        free[name] -= value
    return True
