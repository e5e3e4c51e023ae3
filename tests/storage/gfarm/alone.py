"""One Gfarm of gfarmbb's at a time on this machine: its ports are fixed, and workers of pytest run
side by side."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_gfarmbb() -> Iterator[None]:
    """Wait for the tests of other workers, checkouts and users; they wait for this one."""
    with socket.socket(socket.AF_UNIX) as lock:
        while True:
            try:
                lock.bind("\0burstlab-tests-gfarmbb")  # abstract: gone with its owner, unix(7)
                break
            except OSError:
                time.sleep(0.1)
        yield
