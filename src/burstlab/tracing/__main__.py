"""The tracer: runs a command under strace or bpftrace and counts, on one host of a cell.

It ends as the command does, with its status or by its signal.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burstlab.process import this_boot
from burstlab.tracing import by_bpftrace, by_strace
from burstlab.tracing.counting import Places

TRACED = "BURSTLAB_TRACED"  # on which host: another's environment may come here, too
WAYS: dict[str, Callable[[list[str], Places], tuple[int, dict[str, Any]]]] = {
    "strace": by_strace.run,
    "bpftrace": by_bpftrace.run,
}


def main(arguments: list[str]) -> int:
    """``arguments``: the way, the directory, PLACE=PATH ..., --, the command and its arguments."""
    at = arguments.index("--")
    way, directory, *places = arguments[:at]
    command = arguments[at + 1 :]
    # The kernel tells who is traced by strace; srun passes its variables on to who is not.
    by_kernel = way == "bpftrace" and os.environ.get(TRACED) == this_boot()
    if by_kernel or by_strace.tracer_of("self"):
        os.execvp(command[0], command)  # it is counted already
    os.environ[TRACED] = this_boot()
    part = Path(directory, f"{os.uname().nodename}.{os.getpid()}.json")
    part.parent.mkdir(exist_ok=True)
    part.touch()  # one that stays empty tells that its tracer was ended
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # meant for the command, which gets its own
    given = Places(dict(place.split("=", 1) for place in places))
    returncode, found = WAYS[way](command, given)
    found["tracer_cpu_s"] += time.process_time()  # who counts is a part of the tracer
    partial = part.with_suffix(".partial")
    partial.write_text(json.dumps({"host": os.uname().nodename, **found}))
    partial.rename(part)
    return as_it_ended(returncode)


def as_it_ended(returncode: int) -> int:
    """An exit status, or this process ended by the signal that ended the command."""
    if returncode < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -returncode not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -returncode)
    return returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
