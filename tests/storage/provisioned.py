"""A storage provisioned as a cell does it, without a workload, on virtual nodes of this machine.

``spread.py`` has the same on several hosts.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burstlab.lease import MARKER, Lease
from burstlab.mounts import mounts_below
from burstlab.nodes import Host, Nodes, VirtualNodes
from burstlab.pfs.emulation import Emulation
from burstlab.pfs.site import EmulatedPfs, MountedPfs, ParallelFileSystem
from burstlab.process import members
from burstlab.storage import storage_class
from burstlab.storage.interface import Context
from burstlab.supervision import Supervisor
from tests.storage import conformance

PROVIDED = "burst-buffer"  # what a scheduler gave, below a test's root
FREE = Emulation(metadata_latency_ms=0, io_latency_ms=0, bandwidth_mb_s=0, metadata_rate=0)
REMAINS_S = 15.0  # what was told to end may take a moment, on four nodes a long one


@dataclass(frozen=True)
class Case:
    """One way a storage is provisioned, and what of the machine that takes."""

    storage: str
    nodes: int = 1
    needs: frozenset[str] = frozenset()
    emulated_pfs: bool = False
    way: str = ""  # what its options make of it, where that is another one
    launch: str = ""  # how the hosts of a lab are reached; none: virtual nodes of this machine
    requires: tuple[str, ...] = field(default=(), compare=False)
    options: Callable[[Path], dict[str, Any]] = field(default=lambda _: {}, compare=False)

    def __str__(self) -> str:
        words = [self.storage, f"n{self.nodes}", *sorted(self.needs)]
        words += [self.way] * bool(self.way) + ["emulated"] * self.emulated_pfs
        words += [self.launch] * bool(self.launch)
        return "-".join(words)


class Provisioned:
    """A storage with its lease, its nodes and its parallel file system."""

    def __init__(self, case: Case, root: Path, identifier: str) -> None:
        """``root`` exists; everything of the storage lies below ``root``."""
        self.case, self.root = case, root
        self.lease = Lease.create(identifier)
        self.supervisor = Supervisor(self.lease)
        self.directory = self.lease.directory(root / f"burstlab-{identifier}")
        self.nodes = self._nodes()
        self.pfs = self._pfs()
        provider = storage_class(case.storage)
        context = Context(
            id=identifier,
            directory=self.nodes.directory,
            nodes=self.nodes,
            lease=self.lease,
            pfs=self.pfs,
            needs=case.needs,
            time_limit_s=0.0,
        )
        self.storage = provider(provider.Options(**case.options(root)), context)

    def _nodes(self) -> Nodes:
        return VirtualNodes(self.directory, self.case.nodes, self.lease)

    def _pfs(self) -> ParallelFileSystem:
        if self.case.emulated_pfs:
            return EmulatedPfs(self.directory, FREE, {}, self.lease)
        return MountedPfs(self.root, self.lease.id, self.lease)

    def start(self) -> None:
        """As a cell does."""
        self.pfs.start(self.supervisor)
        self.storage.start()

    def ruin(self) -> None:
        """The last host loses its disk, and what is mounted for the cell its directories."""
        shutil.rmtree(self.nodes.hosts[-1].local_dir)
        directory = self.directory / "pfs-backing" if self.case.emulated_pfs else self.pfs.work
        shutil.rmtree(directory)
        shutil.rmtree(self.root / PROVIDED, ignore_errors=True)

    def stop(self) -> list[str]:
        """As a cell does; returns what is left then, which is nothing."""
        self.storage.stop()
        left = [*self.nodes.close()]
        self.pfs.stop()
        left += self.lease.clean()
        self.lease.release()
        return left

    def remains(self) -> list[str]:
        """Processes, mounts and directories of this storage that stay."""
        deadline = time.monotonic() + REMAINS_S
        while (found := self.holds()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def holds(self) -> list[str]:
        """Those that are there now."""
        found = [f"process {member.pid}" for member in members(f"{MARKER}={self.lease.id}")]
        found += [f"mount {path}" for path in mounts_below(self.directory)]
        left = self.root.glob(f"burstlab-{self.lease.id}*")
        return found + [f"directory {path}" for path in left]

    def place(self, host: Host) -> Path:
        """The storage as ``host`` sees it; what is not shared has its own path on virtual nodes."""
        if self.storage.shared:
            return self.storage.mount
        first = self.nodes.hosts[0].local_dir
        return host.local_dir / self.storage.mount.relative_to(first)

    def names(self, host: Host) -> list[str]:
        """What lies on the storage as ``host`` sees it."""
        return sorted(path.name for path in self.place(host).iterdir())

    def write(self, host: Host, name: str, text: str) -> None:
        """A file written on ``host``."""
        (self.place(host) / name).write_text(text)

    def check(self) -> dict[str, str]:
        """Run the conformance checks on every host; what they said, by name, of those that fail."""
        failed: dict[str, str] = {}
        for host in self.nodes.hosts:
            done = subprocess.run(self.checks(host), stdout=subprocess.PIPE, text=True)
            failed |= self.told(host, done.stdout)
        return failed

    def checks(self, host: Host) -> list[str]:
        """The program that runs all of them, on ``host``."""
        here = str(self.place(host) / host.name)
        return [sys.executable, conformance.__file__, "all", here, *self.case.needs]

    def told(self, host: Host, line: str) -> dict[str, str]:
        """What that program said."""
        return {name: f"{host.name}: {said}" for name, said in json.loads(line).items()}

    def daemons(self) -> list[tuple[Host, str]]:
        """What runs for the storage, by the names that their deaths are told by."""
        return [(self.nodes.hosts[0], name) for name in self.lease.children]

    def kill(self, host: Host, name: str) -> None:
        """End a daemon as a crash does."""
        child = self.lease.children[name]
        os.kill(child.pid, signal.SIGKILL)
        child.wait(10)

    def wrong(self) -> list[str]:
        """What a cell would be told now."""
        return [*self.supervisor.deaths(), *self.nodes.deaths(), *self.storage.problems()]
