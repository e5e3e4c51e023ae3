"""Actions on every host of a cell.

An action is a function ``f(node, **arguments)`` named ``module:function``. Virtual nodes run it
in this process; other hosts run it in their agent (``python -m burstlab.agent``), which holds a
lease of its own there and cleans up when the connection ends, whoever ended it.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from burstlab.errors import BurstlabError, NodeError
from burstlab.lease import Lease


class Host(NamedTuple):
    """One host of a cell; ``local_dir`` is the cell's own directory on it (node-local)."""

    name: str
    local_dir: Path


class Node(NamedTuple):
    """What an action sees of the host it runs on."""

    host: Host
    lease: Lease


class Nodes(Protocol):
    """All hosts of a cell."""

    hosts: tuple[Host, ...]
    directory: Path  # the cell's own on every host, the same path on each

    def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        """Run ``action`` on every host at once; results by host name.

        Arguments and results are JSON. Raises NodeError for the first host that failed.
        """

    def deaths(self, patience_s: float = 10.0) -> list[str]:
        """Daemons that died on a host, and hosts that do not answer for ``patience_s``."""

    def close(self) -> list[str]:
        """Clean up on every host; returns what could not be cleaned, host first."""


class VirtualNodes:
    """Nodes that are directories of this machine; their actions run here."""

    def __init__(self, directory: Path, count: int, lease: Lease) -> None:
        """``directory`` exists; each node gets a directory node01, node02, ... below it."""
        names = [f"node{number:02}" for number in range(1, count + 1)]
        self.hosts = tuple(Host(name, directory / name) for name in names)
        self.directory = directory
        self._lease = lease
        for host in self.hosts:
            host.local_dir.mkdir(mode=0o700)

    def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        """See Nodes."""
        function = resolve(action)
        if len(self.hosts) == 1:
            return {self.hosts[0].name: self._act(function, self.hosts[0], arguments)}
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(self.hosts)) as pool:
            results = pool.map(lambda host: self._act(function, host, arguments), self.hosts)
            return {host.name: result for host, result in zip(self.hosts, results, strict=True)}

    def deaths(self, patience_s: float = 0.0) -> list[str]:
        """The cell's supervisor sees the deaths on its own machine."""
        return []

    def close(self) -> list[str]:
        """Nothing of their own: the cell's lease holds all."""
        return []

    def _act(self, function: Callable[..., Any], host: Host, arguments: dict[str, Any]) -> Any:
        try:
            return function(Node(host, self._lease), **arguments)
        except NodeError:
            raise
        except (BurstlabError, OSError) as error:
            raise NodeError(host.name, str(error)) from error


def resolve(action: str) -> Callable[..., Any]:
    """The function behind ``module:function``; only burstlab's own modules are looked in."""
    module, _, name = action.partition(":")
    if not module.startswith("burstlab."):
        raise BurstlabError(f"action {action!r} is not one of burstlab's")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
