"""One Gfarm of gfarmbb's at a time on this machine: its ports are fixed, and workers of pytest run
side by side."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def only_gfarmbb() -> Iterator[None]:
    """Wait for the tests of other workers; they wait for this one."""
    with Path(__file__).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
