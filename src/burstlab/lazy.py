"""Lazy staging: the data set comes to node-local storage while the workload runs.

On every host an agent of burstio (docs/prefetching.md) shows the data set in a directory, fills a
cache on node-local storage in the order of a list, and reads what is wanted earlier from the
source. Programs that know of it ask the agent for minibatches instead. With peers, the agents read
for one another: each caches a part, and is asked for it by the others.
"""

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from burstlab.allocation import own_address
from burstlab.errors import StagingError
from burstlab.nodes import Host, Node, Nodes, VirtualNodes
from burstlab.supervision import ended_how, last_words

READY_S = 60.0  # for the list of a million files to be read
DRAIN_S = 120.0  # for what is in memory to be written
CHILD = "burstio agent"
ACTIONS = "burstlab.lazy"


class LazyStaging:
    """The agents of all hosts; virtual nodes share one, as they share their storage's path."""

    def __init__(
        self, nodes: Nodes, manifest: Path, source: Path, order: Path | None, peers: bool
    ) -> None:
        """``manifest`` and ``order`` are seen by all hosts; ``source`` is the data set's root.

        ``peers``: the agents read for one another; for hosts that are not virtual.
        """
        self._nodes = nodes
        self._only = nodes.hosts[0].name if isinstance(nodes, VirtualNodes) else ""
        self._arguments = {"manifest": str(manifest), "source": str(source)}
        self._arguments |= {"order": str(order or "")}
        self._peers = [host.name for host in nodes.hosts] if peers else []
        self._running = False
        self.data = data_directory(nodes.hosts[0])
        self.socket = _directory(nodes.hosts[0]) / "agent" / "socket"
        self.statistics: Mapping[str, Any] = {}  # by host, once stopped

    def start(self) -> None:
        """Returns when the data set can be read on every host; the cache fills from then on."""
        self._running = True
        listening = self._nodes.call(
            f"{ACTIONS}:start_here", only=self._only, peers=self._peers, **self._arguments
        )
        if self._peers:
            key = secrets.token_hex(32)
            self._nodes.call(f"{ACTIONS}:introduce_here", addresses=listening, key=key)

    def stop(self) -> list[str]:
        """Write what is to be written, and keep the counters; harmless when done before.

        Returns what they say against a comparison with other cells.
        """
        if not self._running:
            return []
        self._running = False
        told = self._nodes.call(f"{ACTIONS}:stop_here", only=self._only)
        self.statistics = {host: counters for host, counters in told.items() if counters}
        return issues(self.statistics)


def issues(statistics: Mapping[str, Any]) -> list[str]:
    """Of the agents' counters, by host."""
    said = []
    for host, counters in statistics.items():
        if ended := counters.get("ended"):
            said.append(f"{host}: its agent did not end in order: {ended}")
        if damaged := counters.get("checksum_failures"):
            said.append(
                f"{host}: {damaged} files were damaged in the cache: the PFS was read again"
            )
        if failed := counters.get("peer_errors"):
            first = ", ".join(counters["peer_faults"][:3])
            said.append(
                f"{host}: {failed} questions to peers were not answered: the PFS was read for them;"
                f" first: {first}"
            )
    return said


def data_directory(host: Host) -> Path:
    """Where the workload reads the data set on a host."""
    return _directory(host) / "dataset"


def start_here(
    node: Node, manifest: str, source: str, order: str, only: str, peers: list[str]
) -> str | None:
    """Node action: start the host's agent. Raises StagingError with its last words.

    One that has peers is not ready yet, and where it listens for them is returned: ADDRESS:PORT.
    """
    if only not in ("", node.host.name):
        return None
    directory, data = _directory(node.host), data_directory(node.host)
    node.lease.directory(directory)
    data.mkdir(0o700)
    node.lease.mount(data)
    command: list[str | Path] = [sys.executable, "-m", "burstio.agent", "--manifest", manifest]
    command += ["--root", source, "--socket", directory / "agent" / "socket"]
    command += ["--cache", directory / "cache", "--mount", data]
    command += ["--statistics", directory / "statistics.json"]
    command += ["--order", order] if order else []
    if peers:
        other = next((name for name in peers if name != node.host.name), "localhost")
        command += ["--peers", node.host.name, own_address(other)]
    with _log(node.host).open("wb") as output:
        stdin = subprocess.PIPE if peers else subprocess.DEVNULL
        node.lease.spawn(command, CHILD, output, stdin=stdin)
    return _said(node, "listening" if peers else "ready")


def introduce_here(node: Node, addresses: Mapping[str, str], key: str) -> None:
    """Node action: tell the host's agent who its peers are. Raises StagingError as start_here."""
    stdin = node.lease.children[CHILD].stdin
    assert stdin is not None
    with suppress(BrokenPipeError), stdin:  # it has ended, and said why
        stdin.write(json.dumps({"addresses": addresses, "key": key}).encode() + b"\n")
    _said(node, "ready")


def stop_here(node: Node, only: str) -> dict[str, Any] | None:
    """Node action: end the host's agent; its counters, and how it ``ended`` if not in order.

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
    counters: dict[str, Any] = {}
    with suppress(FileNotFoundError):  # told by how it ended
        counters = json.loads((_directory(node.host) / "statistics.json").read_bytes())
    if child.returncode != 0:
        counters["ended"] = ended_how(child.returncode)
    return counters


def _said(node: Node, word: str) -> str:
    """The rest of the line that begins with this word, once the host's agent has said it."""
    child, log = node.lease.children[CHILD], _log(node.host)
    deadline = time.monotonic() + READY_S
    while True:
        for line in log.read_text(errors="replace").splitlines(keepends=True):
            if line.startswith(word) and line.endswith("\n"):
                return line.removeprefix(word).strip()
        if child.poll() is not None or time.monotonic() > deadline:
            del node.lease.children[CHILD]
            said = last_words(log.read_text(errors="replace"))
            raise StagingError(f"--staging lazy: the agent is not ready: {said}")
        time.sleep(0.005)


def _log(host: Host) -> Path:
    return _directory(host) / "agent.log"


def _directory(host: Host) -> Path:
    return host.local_dir / "lazy"
