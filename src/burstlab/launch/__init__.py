"""How one command is started on every host at once, with its stdin broadcast to all.

A launcher is one function ``command(hosts, argv, options, scratch) -> argv``: the local program
that does it. ``scratch`` is for files of its own: a directory of the caller, who removes it, and a
name on the other hosts, which the launcher leaves as it found it. What the hosts answer comes
back in lines of up to 1000 bytes that stay whole, in any order, so whoever talks to them lets
each line name its host (burstlab.agents does). Adding a launcher: a module here and a line below,
which pass tests/launch/test_conformance.py on a lab's nodes; it may have a pattern CHATTER, for
lines that it prints whatever the cause.
"""

import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Launcher(Protocol):
    """See above."""

    def __call__(
        self,
        hosts: Sequence[str],
        argv: Sequence[str],
        options: Sequence[str],
        scratch: Path | None = None,
    ) -> list[str]: ...


LAUNCHERS = {
    "ssh": "burstlab.launch.ssh",
    "srun": "burstlab.launch.srun",
    "mpirun": "burstlab.launch.mpirun",
}
HOST = "%h"  # in an argument: the name of the host it runs on, as the allocation spells it


def launcher(name: str) -> Launcher:
    """The launcher of that name."""
    found: Launcher = importlib.import_module(LAUNCHERS[name]).command
    return found


def chatter(name: str) -> re.Pattern[str]:
    """Matches what that launcher says and what explains nothing."""
    module = importlib.import_module(LAUNCHERS[name])
    return re.compile(getattr(module, "CHATTER", "(?!)"))
