"""Cells on a lab's nodes, submitted as the ordinary user, and what is left of them there.

The nodes' processes, directories and mounts are looked at from the host: nothing has to run on a
node to tell what runs there.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.lab.cluster import NODES, REPOSITORY, Cluster, until

SHARED = "/pfs/work"


class LabCell:
    """One cell in a Slurm job on the first nodes of a lab."""

    def __init__(self, cluster: Cluster, name: str, nodes: int = 2) -> None:
        self.cluster, self.name, self.nodes = cluster, name, nodes
        self.seen = cluster.directory / "pfs" / name  # the cell directory, from the host
        self.job = ""

    def submit(self, storage: str, script: str, *flags: str, launch: str = "srun") -> None:
        """`burstlab run` in a batch job; the script runs in the cell's directory."""
        words = [sys.executable, "-m", "burstlab", "run", "--storage", storage]
        words += ["--launch", launch, "--local-dir", "/local", "--pfs", SHARED]
        words += ["--cell-dir", f"{SHARED}/{self.name}", *flags, "--", "sh", "-c", script]
        job = self.cluster.directory / f"{self.name}.sh"
        quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        path = f"PYTHONPATH={REPOSITORY / 'src'}"
        job.write_text(f"#!/bin/sh\ncd '{REPOSITORY}' && exec env {path} {quoted}\n")
        nodes = ",".join(NODES[: self.nodes])
        options = ("-w", nodes, "-N", str(self.nodes), "-o", f"{SHARED}/{self.name}.out")
        words = ["sbatch", "--parsable", "--no-requeue", "--overcommit", *options, str(job)]
        self.job = self.cluster.run("head", *words).strip()

    def running(self) -> None:
        """Wait until the workload says so."""
        until(lambda: (self.seen / "running").exists() or self.ended(), f"{self.name} runs")
        assert not self.ended(), self.said()

    def ended(self) -> bool:
        return self.state() not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")

    def state(self) -> str:
        words = ("squeue", "-h", "-t", "all", "-j", self.job, "-o", "%T")
        return self.cluster.run("head", *words, user="root").strip()

    def finish(self, limit_s: float = 60.0) -> dict[str, Any] | None:
        """Wait for the end of the job; its record."""
        until(self.ended, f"the end of {self.name}: {self.said()}", limit_s)
        return self.record()

    def record(self) -> dict[str, Any] | None:
        found = [p for n in ("record.json", "failed.json") if (p := self.seen / n).exists()]
        assert len(found) < 2, found
        return json.loads(found[0].read_text()) if found else None

    def said(self) -> str:
        try:
            return (self.seen.parent / f"{self.name}.out").read_text()
        except FileNotFoundError:
            return ""

    def pid(self, machine: str, *words: str) -> int:
        """The oldest process of the cell's user on a machine whose command line begins so, the
        first word by its last component."""
        return min(
            pid
            for pid in processes(self.cluster, machine)
            if (command := command_line(pid)) and matches(command, words)
        )

    def holder(self) -> int:
        """The process that runs the cell."""
        return self.pid(NODES[0], Path(sys.executable).name, "-m", "burstlab", "run")


def matches(command: list[str], words: tuple[str, ...]) -> bool:
    return [Path(command[0]).name, *command[1 : len(words)]] == list(words)


def command_line(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    return []


def processes(cluster: Cluster, machine: str) -> list[int]:
    """Pids, on this host, of the ordinary user's processes on a machine of the lab."""
    uid = (cluster.directory / "home").stat().st_uid
    return [pid for pid in pids_on(cluster, machine) if (Path(f"/proc/{pid}").stat().st_uid == uid)]


def pids_on(cluster: Cluster, machine: str) -> list[int]:
    """Pids of a machine, its first process first."""
    mine = (cluster.directory / "machines" / machine / "hostname").stat()
    found = []
    for entry in sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        with suppress(OSError):
            name = Path(f"/proc/{entry}/root/etc/hostname").stat()
            state = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
            if (name.st_dev, name.st_ino) == (mine.st_dev, mine.st_ino) and state != "Z":
                found.append(entry)
    return found


def left_on(cluster: Cluster, machine: str) -> list[str]:
    """Processes, mounts, directories, leases of cells on a machine."""
    own = cluster.directory / "machines" / machine
    found = [f"process {pid}: {command_line(pid)}" for pid in processes(cluster, machine)]
    for pattern in ("local/burstlab-*", "var-tmp/burstlab-*/*.lease", "tmp/.gfarm*"):
        found += [str(path.relative_to(own)) for path in own.glob(pattern)]
    for pid in pids_on(cluster, machine)[:1]:
        lines = Path(f"/proc/{pid}/mounts").read_text().splitlines()
        found += [f"mount {line}" for line in lines if line.split()[1].startswith("/local/")]
    return [f"{machine}: {what}" for what in found]


def left(cluster: Cluster, machines: tuple[str, ...] = NODES) -> list[str]:
    """What is left of cells on the nodes and on the parallel file system."""
    found = [what for machine in machines for what in left_on(cluster, machine)]
    return found + [str(path) for path in (cluster.directory / "pfs").glob("burstlab-*")]


def await_nothing_left(cluster: Cluster, machines: tuple[str, ...] = NODES) -> None:
    """Processes that were just killed may take a moment."""
    try:
        until(lambda: not left(cluster, machines), "nothing is left", limit_s=15)
    except AssertionError:
        raise AssertionError(f"left behind: {left(cluster, machines)}") from None


def reap(cluster: Cluster, machine: str) -> str:
    """What a user does after a killed cell."""
    words = (sys.executable, "-m", "burstlab", "reap")
    return cluster.run(machine, *words)
