"""Batch schedulers: how a job is submitted, asked for and cancelled. One module for each.

What a module offers is in ``burstlab.scheduler.interface``; nothing in one runs anything, so all
of it is tested on what the real commands printed.
"""

import importlib
from typing import cast

from burstlab.errors import ConfigurationError
from burstlab.scheduler.interface import Scheduler

SCHEDULERS = ("slurm", "pbs", "gridengine", "nqsv", "pjm")


def scheduler(name: str) -> Scheduler:
    """The module of a scheduler. Raises ConfigurationError for a name that is none."""
    if name not in SCHEDULERS:
        known = ", ".join(SCHEDULERS)
        raise ConfigurationError(f"scheduler {name!r}: no such scheduler; there are: {known}")
    return cast(Scheduler, importlib.import_module(f"burstlab.scheduler.{name}"))
