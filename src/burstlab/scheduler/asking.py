"""Runs the schedulers' commands."""

import subprocess
from collections.abc import Iterable

from burstlab.scheduler.interface import Answer, SchedulerError

TIME_LIMIT_S = 60.0


def ask(argv: list[str], *, held: Iterable[int] = ()) -> Answer:
    """Run one command; ``held`` are descriptors it keeps open while it runs.

    Raises SchedulerError when it can't be run or takes longer than a minute.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT_S,
            pass_fds=tuple(held),
        )
    except FileNotFoundError:
        raise SchedulerError(f"{argv[0]}: no such command on this host") from None
    except subprocess.TimeoutExpired:
        raise SchedulerError(f"{argv[0]}: no answer within {TIME_LIMIT_S:.0f} s") from None
    return Answer(done.stdout, done.stderr, done.returncode)
