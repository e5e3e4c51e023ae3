"""One Snakemake at a time in a checkout, a lock that no killed one leaves behind, and no job that
an interrupted one leaves.

Snakemake's own lock stays when it is killed, and must be removed by hand; the profiles of clusters
switch it off (``nolock``), so that a new Snakemake goes on where a killed one stopped.
"""

import fcntl
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from burstlab.errors import ConfigurationError

LOCK = Path(".burstlab/driver.lock")
_held: list[int] = []


def drive_alone() -> None:
    """Hold the lock until this process ends. Raises ConfigurationError when another holds it."""
    LOCK.parent.mkdir(exist_ok=True)
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 200).decode(errors="replace").strip()
        os.close(lock)
        raise ConfigurationError(
            f"another Snakemake is at work in {Path.cwd()} ({holder}): wait for it, or end it"
        ) from None
    os.ftruncate(lock, 0)
    os.write(lock, f"process {os.getpid()} on {os.uname().nodename}\n".encode())
    _held.append(lock)


def cancel_when_interrupted() -> None:
    """Ctrl-C and SIGTERM cancel the checkout's jobs, before Snakemake ends as ever.

    Snakemake 9.27 has its executor cancel those jobs only that it is not just asking about, and
    gives the command for it two seconds: so the profiles' own does nothing.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, partial(_cancel, signal.getsignal(number)))


def _cancel(ordinary: Any, number: int, frame: FrameType | None) -> None:
    command = [sys.executable, "-m", "burstlab", "cancel"]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    if callable(ordinary):
        ordinary(number, frame)
