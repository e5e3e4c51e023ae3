"""The lab on which cells are disturbed: two nodes for each storage, so that a fault strikes one
cell of each at the same time. `beeond` is the double of tests/storage/beeond on the lab's nodes.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from burstlab.dataset.manifest import members
from burstlab.dataset.writing import scan, write_manifest
from tests.lab.cells import SHARED, LabCell, Machine, await_, on_head
from tests.lab.cluster import Cluster
from tests.storage.beeond.cluster import SERVICES, Double

STORAGES = ("pfs", "nodelocal", "gfarm", "beeond")
PAIRS = {
    storage: (f"node{2 * at + 1:02}", f"node{2 * at + 2:02}") for at, storage in enumerate(STORAGES)
}
WIRE = "/beeond"  # of the site: a tmpfs that all its machines see
AS_ROOT = f"{WIRE}/as-root --reuid=0 --regid=0 --clear-groups"


class LabDouble(Double):
    """The double on a lab's nodes: its ssh enters them, and what is sudo elsewhere is a copy of
    setpriv there, which no one outside of the lab's name spaces can reach."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        super().__init__(cluster.directory / "beeond")
        self.conf = self.root / "conf"
        self.conf.mkdir()
        for service in (*SERVICES, "client"):
            text = "connDisableAuthentication = true\n"
            (self.conf / f"beegfs-{service}.conf").write_text(text)
        self.find_hosts()

    def mount_wire(self) -> None:
        (self.root / "wire").symlink_to(WIRE)
        script = (
            f"mkdir {WIRE}; mount -t tmpfs -o mode=0755 beegfs_ondemand {WIRE}; "
            f"cp /usr/bin/setpriv {WIRE}/as-root; chmod 4755 {WIRE}/as-root"
        )
        site = str(self._cluster.site_pids()[1])
        subprocess.run(["nsenter", "-t", site, "-m", "sh", "-ec", script], check=True)

    def unmount_wire(self) -> None:
        """It goes with the site."""

    def limit(self, size: str) -> None:
        """Of all files in all its mounts."""
        site = str(self._cluster.site_pids()[1])
        words = ["mount", "-o", f"remount,size={size}", WIRE]
        subprocess.run(["nsenter", "-t", site, "-m", *words], check=True)

    def find_hosts(self) -> None:
        """Machines that were switched on again have another first process."""
        self.switch.hosts.clear()
        self.switch.hosts.update(self._cluster.machines())

    def variables(self) -> dict[str, str]:
        """For jobs that call beeond."""
        path = f"{self.binaries}:{os.environ['PATH']}"
        return {"PATH": path, "BEEOND_DOUBLE": str(self.root)}

    @property
    def flags(self) -> list[str]:
        return ["-o", f"conf={self.conf}", "-o", f"prefix={AS_ROOT}"]


class Bench:
    """A lab of eight nodes, and what is on them when no cell is."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.machines: dict[str, Machine] = {}

    def __enter__(self) -> "Bench":
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        count = sum(len(pair) for pair in PAIRS.values())
        self.cluster.must("up", "--nodes", str(count), "--pfs-option", "metadata_latency_ms=0.2")
        self.double = LabDouble(self.cluster)
        self.make_data_set()
        names = [name for pair in PAIRS.values() for name in pair]
        self.machines = {name: Machine(self.cluster, name) for name in names}

    def down(self) -> None:
        if hasattr(self, "double"):
            self.double.close()
        self.cluster.remove()

    def cell(self, name: str, storage: str) -> "StruckCell":
        return StruckCell(self, name, storage)

    def lose(self, machine: str) -> None:
        """The power is gone."""
        del self.double.switch.hosts[machine]
        self.cluster.must("kill", machine)

    def boot(self, machine: str) -> None:
        """It comes back, with its disk as it was; only what is running then is its own."""
        self.cluster.must("start", machine)
        self.double.find_hosts()
        self.machines[machine].booted()

    def reboot(self, machine: str) -> None:
        self.lose(machine)
        self.boot(machine)

    def on(self, machine: str, *argv: str) -> None:
        """Run a command there as root."""
        self.cluster.run(machine, *argv, user="root")

    def make_data_set(self) -> None:
        """Six files of 100 kB on the parallel file system, with their manifest beside them."""
        root = self.cluster.directory / "pfs/data/tiny"
        root.mkdir(parents=True)
        for number in range(6):
            (root / f"{number}.dat").write_bytes(bytes([number]) * 100_000)
        manifest, seen = root.with_name("manifest.json"), Path(SHARED, "data/tiny")
        entries = scan(root, members(root, ["*.dat"]))
        write_manifest(
            manifest, entries,
            name="tiny", source="synthetic", details={}, root=seen, patterns=["*.dat"],
        )  # fmt: skip

    def rescue(self, cell: "StruckCell") -> None:
        """The next cells get its nodes empty, whatever it left there."""
        on_head(self.cluster, "scancel", "--signal=KILL", "--full", f"--nodelist={cell.nodes[0]}")
        for name in set(cell.nodes) & self.cluster.machines().keys():
            self.machines[name].sweep()

    def pfs_server(self) -> int:
        """The pid of the parallel file system's server."""
        return int(self.cluster.must("status").splitlines()[-1].split()[-1])

    def stall(self) -> None:
        """The parallel file system answers nobody, until the next call."""
        log = self.cluster.directory / "log/pfs.log"
        before = log.read_text()
        os.kill(self.pfs_server(), signal.SIGUSR1)
        await_(lambda: log.read_text() != before, "the server says that it has stalled, or goes on")

    def reap(self, machines: Sequence[str]) -> None:
        """What a user does after a killed cell, on each of its hosts."""
        for machine in machines:
            words = [f"{name}={value}" for name, value in self.double.variables().items()]
            self.cluster.run(machine, "env", *words, sys.executable, "-m", "burstlab", "reap")


class StruckCell(LabCell):
    """A cell on the nodes of its storage."""

    def __init__(self, bench: Bench, name: str, storage: str) -> None:
        super().__init__(bench.cluster, name, PAIRS[storage])
        self.bench, self.storage = bench, storage
        self.neighbour: StruckCell | None = None

    def begin(self, script: str, *flags: str) -> None:
        """Submit it."""
        more = self.bench.double.flags if self.storage == "beeond" else []
        variables = self.bench.double.variables() if self.storage == "beeond" else {}
        self.submit(self.storage, script, *more, *flags, variables=variables)

    def left(self, machines: Sequence[str]) -> list[str]:
        """What is left of it on some of its nodes."""
        return [what for name in machines for what in self.bench.machines[name].left()]

    def left_on_pfs(self) -> list[str]:
        """Its own directory there."""
        marks = [self.seen / name for name in ("running", "failed.json", "record.json")]
        text = "".join(mark.read_text() for mark in marks if mark.exists())
        return [
            str(path)
            for path in self.seen.parent.glob("burstlab-*")
            if path.name.removeprefix("burstlab-") in text
        ]

    def await_nothing_left(
        self, machines: Sequence[str], pfs: bool = True, limit_s: float = 15
    ) -> None:
        """Processes that were just killed may take a moment."""

        def left() -> list[str]:
            return self.left(machines) + (self.left_on_pfs() if pfs else [])

        try:
            await_(lambda: not left(), "nothing is left", limit_s)
        except AssertionError:
            raise AssertionError(f"left behind: {left()}") from None

    def fields(self) -> dict[str, Any]:
        """Its record, which must be there."""
        record = self.record()
        assert record is not None, self.said()
        return record
