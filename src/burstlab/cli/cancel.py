"""Cancel jobs that `burstlab submit` submitted; without ids, all that are not over."""

import argparse
import dataclasses
import sys
import time
from collections.abc import Iterable

from burstlab.errors import ConfigurationError
from burstlab.scheduler import jobs
from burstlab.scheduler import scheduler as module_of
from burstlab.scheduler.asking import ask
from burstlab.scheduler.jobs import Job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Ids."""
    parser.add_argument("ids", nargs="*", help="default: all of this checkout")


def main(arguments: argparse.Namespace) -> int:
    """Exit status 1 when the scheduler did not take it."""
    chosen = [_find(name) for name in arguments.ids] or jobs.open_jobs()
    return 0 if cancel(chosen) else 1


def cancel(chosen: Iterable[Job]) -> bool:
    """Cancel the jobs; whether the schedulers' commands succeeded, else stderr says what not."""
    by_scheduler: dict[str, list[Job]] = {}
    for job in chosen:
        jobs.write(dataclasses.replace(job, cancelled_s=time.time()))
        by_scheduler.setdefault(job.scheduler, []).append(job)
    good = True
    for name, some in by_scheduler.items():
        answer = ask(module_of(name).cancellation(job.id for job in some))
        if answer.status != 0:
            print(f"burstlab cancel: {answer.words()}", file=sys.stderr)
            good = False
    return good


def _find(identifier: str) -> Job:
    job = jobs.find(identifier)
    if job is None:
        raise ConfigurationError(f"no job {identifier} in {jobs.JOBS}")
    return job
