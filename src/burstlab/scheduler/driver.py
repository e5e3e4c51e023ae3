"""One Snakemake at a time in a checkout, and a lock that no killed one leaves behind.

Snakemake's own lock stays when it is killed, and must be removed by hand; the profiles of clusters
switch it off (``nolock``), so that a new Snakemake goes on where a killed one stopped.
"""

import fcntl
import os
from pathlib import Path

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
