"""Which module drives a lab's batch scheduler, and what such a module offers."""

import importlib
from collections.abc import Callable
from typing import Protocol, cast

from lab.accounts import Account
from lab.layout import Lab

# (name, command, whether it answers): starts a daemon and waits until it answers
Launch = Callable[[str, list[str], Callable[[], bool]], None]


class Scheduler(Protocol):
    """The functions of ``lab.slurm`` and ``lab.gridengine``."""

    def programs(self, lab: Lab) -> tuple[str, ...]:
        """What must be there, as absolute paths."""

    def write(self, lab: Lab, account: Account) -> None:
        """Make configuration, keys and state directories, before anything runs."""

    def prepare(self, lab: Lab, machine: str) -> None:
        """Make mount points in a machine's own directories, before it boots."""

    def fstab(self, lab: Lab, machine: str) -> str:
        """Mounts of a machine beyond lab.mounts, as fstab(5)."""

    def start(self, lab: Lab, machine: str, launch: Launch) -> None:
        """Start a machine's daemons, in its pid 1; returns when they answer."""

    def states_command(self) -> list[str]:
        """Run on the head, it prints what ``states`` reads."""

    def states(self, text: str) -> dict[str, str]:
        """State of each node, in the scheduler's own words."""

    def is_ready(self, state: str) -> bool:
        """Whether jobs can start on a node in such a state."""


def of(lab: Lab) -> Scheduler:
    """The module of the lab's scheduler."""
    return cast(Scheduler, importlib.import_module(f"lab.{lab.scheduler}"))
