"""Cells on a lab's nodes, submitted as the ordinary user, and what is left of them there.

The nodes' processes, directories and mounts are looked at from the host: nothing has to run on a
node to tell what runs there.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from burstlab.process import Identity, end
from lab import namespaces
from tests.lab.cluster import REPOSITORY, Cluster
from tests.polling import until

SHARED = "/pfs/work"
ASK_S = 0.2  # between two questions: leaves the processors to those who are waited for
await_ = partial(until, pause_s=ASK_S)


class LabCell:
    """One cell in a Slurm job on some nodes of a lab."""

    def __init__(self, cluster: Cluster, name: str, nodes: Sequence[str]) -> None:
        self.cluster, self.name, self.nodes = cluster, name, tuple(nodes)
        self.seen = cluster.directory / "pfs" / name  # the cell directory, from the host
        self.job = ""

    def submit(
        self,
        storage: str,
        script: str,
        *flags: str,
        launch: str = "srun",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`burstlab run` in a batch job; ``variables`` are added to the job's environment."""
        words = [sys.executable, "-m", "burstlab", "run", "--storage", storage]
        words += ["--launch", launch, "--local-dir", "/local", "--pfs", SHARED]
        words += ["--cell-dir", f"{SHARED}/{self.name}", *flags, "--", "sh", "-c", script]
        given = {"PYTHONPATH": str(REPOSITORY / "src"), **(variables or {})}
        environment = [f"{name}={value}" for name, value in given.items()]
        job = self.cluster.directory / f"{self.name}.sh"
        command = shlex.join(["env", *environment, *words])
        job.write_text(f"#!/bin/sh\ncd {shlex.quote(str(REPOSITORY))} && exec {command}\n")
        where = ("-w", ",".join(self.nodes), "-N", str(len(self.nodes)))
        options = ("--parsable", "--no-requeue", "--overcommit", "-o", f"{SHARED}/{self.name}.out")
        self.job = on_head(self.cluster, "sbatch", *options, *where, str(job), user="lab").strip()

    def running(self) -> None:
        """Wait until the workload says so."""
        await_(lambda: (self.seen / "running").exists() or self.ended(), f"{self.name} runs")
        assert (self.seen / "running").exists(), self.said()

    def ended(self) -> bool:
        return self.state() not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")

    def state(self) -> str:
        return on_head(
            self.cluster, "squeue", "-h", "-t", "all", "-j", self.job, "-o", "%T"
        ).strip()

    def finish(self, limit_s: float = 60.0) -> dict[str, Any] | None:
        """Wait for the end of the job; its record."""
        await_(self.ended, f"the end of {self.name}: {self.said()}", limit_s)
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
        """The oldest process on a machine whose command line begins so, the
        first word by its last component."""
        found: list[Identity] = []

        def look() -> bool:
            here = identities(self.cluster, machine)
            found[:] = [p for p in here if (line := command_line(p.pid)) and matches(line, words)]
            return bool(found)

        await_(look, f"{' '.join(words)} runs on {machine}")
        return min(found, key=lambda one: one.start_ticks).pid  # pids begin anew at some time

    def holder(self) -> int:
        """The process that runs the cell."""
        return self.pid(self.nodes[0], Path(sys.executable).name, "-m", "burstlab", "run")


def on_head(cluster: Cluster, *argv: str, user: str = "root") -> str:
    """Run a command on the head, which must succeed; asked often, so without burstlab between."""
    enter = ["nsenter", "--target", str(cluster.machines()["head"])]
    enter += ["--mount", "--uts", "--ipc", "--pid", "--net", "--wdns=/"]
    if user != "root":
        owner = (cluster.directory / "home").stat()
        enter += ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}"]
        enter += ["--clear-groups"]
    environment = {"PATH": namespaces.PATH, "LANG": os.environ.get("LANG", "C.UTF-8")}
    done = subprocess.run(
        [*enter, *argv], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


def matches(command: list[str], words: tuple[str, ...]) -> bool:
    return [Path(command[0]).name, *command[1 : len(words)]] == list(words)


def command_line(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    return []


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


def identities(cluster: Cluster, machine: str) -> list[Identity]:
    """Processes of a machine."""
    found = []
    for pid in pids_on(cluster, machine):
        with suppress(ProcessLookupError):
            found.append(Identity.of(pid))
    return found


class Machine:
    """One machine, as it was before any cell: what is there besides has been left behind."""

    KEPT = ("/local", "/var/tmp")  # when it is switched off and on
    LOST = ("/tmp", "/dev/shm", "/run")

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name
        self._kept = {*self._scratch(self.KEPT)}
        self.booted()

    def booted(self) -> None:
        """What runs now, and what lies where nothing outlives a boot, is the machine's own."""
        self._processes = {*identities(self.cluster, self.name)}
        self._mounts, self._lost = self._mounted(), {*self._scratch(self.LOST)}

    def left(self) -> list[str]:
        """Processes, mounts (name spaces held by one among them), files and leases of cells."""
        found = [f"process {p.pid}: {' '.join(command_line(p.pid))}" for p in self._strangers()]
        found += [f"mount {line}" for line in sorted(self._mounted() - self._mounts)]
        found += [*self._new(self.KEPT, self._kept), *self._new(self.LOST, self._lost)]
        return [f"{self.name}: {what}" for what in found]

    def sweep(self) -> None:
        """End and remove what is left."""
        end(self._strangers(), grace_s=0)
        new = [line.split()[1] for line in self._mounted() - self._mounts]
        files = [*self._new(self.KEPT, self._kept), *self._new(self.LOST, self._lost)]
        enter = ["nsenter", "-t", str(self.cluster.machines()[self.name]), "-m", "-p", "--wdns=/"]
        for mount in new:
            subprocess.run([*enter, "umount", "-l", mount], check=True)
        subprocess.run([*enter, "rm", "-rf", "--", *files], check=True)

    def root(self) -> Path:
        """Its root directory, from this host."""
        return Path(f"/proc/{self.cluster.machines()[self.name]}/root")

    def _strangers(self) -> list[Identity]:
        return [one for one in identities(self.cluster, self.name) if one not in self._processes]

    def _mounted(self) -> set[str]:
        text = (self.root().parent / "mounts").read_text()
        return {" ".join(line.split()[:3]) for line in text.splitlines()}

    def _new(self, places: Sequence[str], known: set[str]) -> list[str]:
        return [path for path in self._scratch(places) if path not in known]

    def _scratch(self, places: Sequence[str]) -> list[str]:
        """Names in the scratch directories; of burstlab's state directories, what is in them."""
        found = []
        for top in places:
            for path in self.root().joinpath(top.lstrip("/")).iterdir():
                if top == "/var/tmp" and path.name.startswith("burstlab-") and path.is_dir():
                    found += [f"{top}/{path.name}/{one.name}" for one in path.iterdir()]
                elif path.name != "mount":  # of every umount(8), in /run
                    found.append(f"{top}/{path.name}")
        return found
