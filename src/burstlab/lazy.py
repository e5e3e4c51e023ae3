"""Lazy staging: the data set comes to node-local storage while the workload runs.

On every host an agent of burstio (docs/prefetching.md) shows the data set in a directory, fills a
cache on node-local storage in the order of a list, and reads what is wanted earlier from the
source. Programs that know of it ask the agent for minibatches instead.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burstlab.errors import StagingError
from burstlab.nodes import Host, Node, Nodes, VirtualNodes
from burstlab.supervision import last_words

READY_S = 60.0  # for the list of a million files to be read
DRAIN_S = 120.0  # for what is in memory to be written
CHILD = "burstio agent"
ACTIONS = "burstlab.lazy"


class LazyStaging:
    """The agents of all hosts; virtual nodes share one, as they share their storage's path."""

    def __init__(self, nodes: Nodes, manifest: Path, source: Path, order: Path | None) -> None:
        """``manifest`` and ``order`` are seen by all hosts; ``source`` is the data set's root."""
        self._nodes = nodes
        self._only = nodes.hosts[0].name if isinstance(nodes, VirtualNodes) else ""
        self._arguments = {"manifest": str(manifest), "source": str(source)}
        self._arguments |= {"order": str(order or "")}
        self._running = False
        self.data = data_directory(nodes.hosts[0])
        self.socket = _directory(nodes.hosts[0]) / "agent" / "socket"
        self.statistics: Mapping[str, Any] = {}  # by host, once stopped

    def start(self) -> None:
        """Returns when the data set can be read on every host; the cache fills from then on."""
        self._running = True
        self._nodes.call(f"{ACTIONS}:start_here", only=self._only, **self._arguments)

    def stop(self) -> None:
        """Write what is to be written, and keep the counters; harmless when done before."""
        if self._running:
            self._running = False
            told = self._nodes.call(f"{ACTIONS}:stop_here", only=self._only)
            self.statistics = {host: counters for host, counters in told.items() if counters}


def data_directory(host: Host) -> Path:
    """Where the workload reads the data set on a host."""
    return _directory(host) / "dataset"


def start_here(node: Node, manifest: str, source: str, order: str, only: str) -> None:
    """Node action: start the host's agent. Raises StagingError with its last words."""
    if only not in ("", node.host.name):
        return
    directory, data = _directory(node.host), data_directory(node.host)
    node.lease.directory(directory)
    data.mkdir(0o700)
    node.lease.mount(data)
    command: list[str | Path] = [sys.executable, "-m", "burstio.agent", "--manifest", manifest]
    command += ["--root", source, "--socket", directory / "agent" / "socket"]
    command += ["--cache", directory / "cache", "--mount", data]
    command += ["--statistics", directory / "statistics.json"]
    command += ["--order", order] if order else []
    log = directory / "agent.log"
    with log.open("wb") as output:
        child = node.lease.spawn(command, CHILD, output)
    deadline = time.monotonic() + READY_S
    while b"ready" not in log.read_bytes().splitlines():
        if child.poll() is not None or time.monotonic() > deadline:
            del node.lease.children[CHILD]
            said = last_words(log.read_text(errors="replace"))
            raise StagingError(f"--staging lazy: the agent is not ready: {said}")
        time.sleep(0.005)


def stop_here(node: Node, only: str) -> dict[str, Any] | None:
    """Node action: end the host's agent; its counters, where it could write them.

    Raises StagingError when it can't be ended in time, as when its disk hangs.
    """
    child = node.lease.children.pop(CHILD, None)  # its end is no death
    if child is None or only not in ("", node.host.name):
        return None
    child.terminate()
    try:
        child.wait(DRAIN_S)
    except subprocess.TimeoutExpired as error:
        child.kill()
        raise StagingError(
            f"--staging lazy: the agent still wrote to {_directory(node.host)} after {DRAIN_S:g} s"
        ) from error
    try:
        counters: dict[str, Any] = json.loads(
            (_directory(node.host) / "statistics.json").read_bytes()
        )
    except FileNotFoundError:
        return None
    return counters


def _directory(host: Host) -> Path:
    return host.local_dir / "lazy"
