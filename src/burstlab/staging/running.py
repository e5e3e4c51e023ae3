"""A staging that runs on one host: begun by one node action, looked at by others.

A call to the hosts is to be answered soon, and a staging may take hours.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import burstio

from burstlab.errors import BurstlabError, StagingError
from burstlab.nodes import Node
from burstlab.staging.copying import Progress, look, stop

# What is done on each host, by its name (virtual nodes share a process).
_running: dict[str, "Running"] = {}


class Running(Protocol):
    """What has begun on a host."""

    def state(self, wait_s: float) -> dict[str, Any]:
        """``doing`` (the phase), ``files``, ``present``, ``size_bytes``, ``phases`` (seconds of
        each), ``ended``; with an ``error``, and ``lost`` when another host must have one that
        tells why."""

    def cancel(self) -> None:
        """Stop it soon."""


class Copying:
    """burstio at work."""

    def __init__(self, copy: burstio.Copy, phase: str) -> None:
        self._copy, self._phase, self._began = copy, phase, time.monotonic()

    def state(self, wait_s: float) -> dict[str, Any]:
        """See Running."""
        found: dict[str, Any] = {"ended": True}
        try:
            found["ended"] = self._copy.wait(wait_s)
        except burstio.StagingFault as fault:
            found |= {"error": str(fault), "lost": isinstance(fault, burstio.PeerLost)}
        now = look(self._copy)
        phases = {self._phase: time.monotonic() - self._began}
        return {**found, **now._asdict(), "doing": self._phase, "phases": phases}

    def cancel(self) -> None:
        """See Running."""
        stop(self._copy)


Report = Callable[[Progress], None]
Step = Callable[[Report], dict[str, Any] | None]


class Steps:
    """Steps in a thread, each a phase with its name: programs of others, and what follows them.

    A step may report how far it has come, and returns what changes in the state.
    """

    def __init__(self, steps: list[tuple[str, Step]]) -> None:
        self._state: dict[str, Any] = {"doing": "", "files": 0, "present": 0, "size_bytes": 0}
        self._phases: dict[str, float] = {}
        self._steps, self._cancelled = steps, False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        for name, step in self._steps:
            began = time.monotonic()
            self._state["doing"] = name
            try:
                self._state |= step(self._report) or {}
            except (BurstlabError, OSError) as error:
                self._state |= {"error": str(error), "lost": False}
                return
            self._phases[name] = time.monotonic() - began
            if self._cancelled:
                return

    def _report(self, progress: Progress) -> None:
        if self._cancelled:
            raise StagingError("cancelled")
        self._state |= {"files": progress.files, "size_bytes": progress.size_bytes}

    def state(self, wait_s: float) -> dict[str, Any]:
        """See Running."""
        self._thread.join(wait_s)
        phases = dict(self._phases)
        return {**self._state, "phases": phases, "ended": not self._thread.is_alive()}

    def cancel(self) -> None:
        """See Running; the lease ends what runs."""
        self._cancelled = True


def begun(node: Node, running: Running) -> None:
    """Remember it for the actions below."""
    _running[node.host.name] = running


def look_here(node: Node, wait_s: float) -> dict[str, Any] | None:
    """Node action: the state of what runs here, if anything does; see Running."""
    running = _running.get(node.host.name)
    return running.state(wait_s) if running else None


def end_here(node: Node) -> None:
    """Node action: stop and forget it; harmless when nothing runs."""
    if running := _running.pop(node.host.name, None):
        running.cancel()
