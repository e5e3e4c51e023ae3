"""Debian packages start their daemons when they are installed; burstlab starts its own, later."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Every package asks it before a daemon is started: invoke-rc.d(8).
POLICY = Path("/usr/sbin/policy-rc.d")
MARK = "# burstlab's make setup, process "


@contextmanager
def not_started() -> Iterator[None]:
    """No package starts a daemon meanwhile. A policy that is there already stays in force."""
    if POLICY.exists() or not os.access(POLICY.parent, os.W_OK):
        yield
        return
    POLICY.write_text(f"#!/bin/sh\n{MARK}{os.getpid()}\nexit 101\n", encoding="ascii")
    POLICY.chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


def allow_again() -> None:
    """Take away the policy that a killed set-up left."""
    if not os.access(POLICY, os.W_OK):
        return
    owner = POLICY.read_text(encoding="utf-8", errors="replace").partition(MARK)[2].split()
    if owner and not Path("/proc", owner[0]).exists():
        POLICY.unlink(missing_ok=True)
