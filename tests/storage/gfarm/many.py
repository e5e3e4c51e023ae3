"""Cells of several hosts: on the nodes of a lab, run on the first of them by the ordinary user."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.dataset.writing import scan, write_manifest
from tests.lab.cells import Machine
from tests.lab.cluster import NODES, REPOSITORY, Cluster
from tests.polling import until

SHARED = Path("/pfs/work")  # on every machine of the lab
LIMIT_S = 120
_NUMBERS = itertools.count(1)
ON_EVERY_HOST = """
given=$(env | grep -E '^(BURSTLAB_(MOUNT|LOCAL|DATA|CELL|CELL_DIR)|GFARM_CONFIG_FILE)=')
workers=
for host in $(cat "$BURSTLAB_HOSTFILE"); do
    ssh -n "$host" env $given sh -eu "$EACH" >"$BURSTLAB_CELL_DIR/$host.out" 2>&1 &
    workers="$workers $!"
done
for worker in $workers; do wait "$worker"; done
"""


@dataclass(frozen=True)
class Ended:
    """What a cell left to its user."""

    status: int
    said: str
    record: dict[str, Any]
    log: str  # of the workload
    told: dict[str, str]  # by each host, where a script ran on every one


class Many:
    """Runs cells of gfarm on a lab's nodes, over ssh."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.backing = cluster.directory / "pfs"  # of SHARED, on this host
        self._machines = [Machine(cluster, name) for name in NODES]

    def run(
        self, script: str, *flags: str, nodes: Sequence[str] = NODES, local: str = "/local"
    ) -> Ended:
        """A cell with a shell script for a workload, to its end."""
        name = f"gfarm-{next(_NUMBERS)}"
        words = ["--storage", "gfarm", "--launch", "ssh", "--hosts", ",".join(nodes)]
        words += ["--local-dir", local, "--pfs", str(SHARED), "--cell-dir", str(SHARED / name)]
        path = f"PYTHONPATH={REPOSITORY / 'src'}"
        command = ["env", path, sys.executable, "-m", "burstlab", "run", *words, *flags]
        done = subprocess.run(
            self.on(nodes[0], *command, "--", "sh", "-euc", script),
            env=self.cluster.environment, cwd=REPOSITORY,
            capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        cell = self.backing / name
        found = [p for n in ("record.json", "failed.json") if (p := cell / n).exists()]
        assert len(found) == 1, f"{found}: {done.stderr}"
        log = cell / "workload.log"
        told = {path.stem: path.read_text() for path in cell.glob("*.out")}
        return Ended(
            done.returncode,
            done.stderr,
            json.loads(found[0].read_text()),
            log.read_text() if log.exists() else "",
            told,
        )

    def run_on_all(self, script: str, *flags: str, local: str = "/local") -> Ended:
        """A cell whose workload is a script on all its hosts at once."""
        each = self.backing / f"each-{next(_NUMBERS)}.sh"
        each.write_text(script)
        each.chmod(0o755)
        return self.run(f"EACH={SHARED / each.name}{ON_EVERY_HOST}", *flags, local=local)

    def on(self, machine: str, *command: str, user: str = "lab") -> list[str]:
        """The words that run a command on a machine."""
        return self.cluster.argv("exec", "--user", user, machine, "--", *command)

    def must(self, machine: str, *command: str) -> None:
        """Run a command on a machine as root."""
        self.cluster.run(machine, *command, user="root")

    def data_set(self, name: str, sizes: dict[str, int]) -> str:
        """Files of random bytes on the shared file system; their manifest, as the nodes see it."""
        root = self.backing / name
        for path, size in sizes.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(os.urandom(size))
        manifest = self.backing / f"{name}.json"
        entries = scan(root, sorted(sizes))
        write_manifest(
            manifest, entries, name=name, source="synthetic", details={},
            root=root, patterns=["**/*"],
        )  # fmt: skip
        for entry in (manifest, root, *root.rglob("*")):
            entry.chmod(0o755)
        return str(SHARED / manifest.name)

    def nothing_left(self) -> None:
        """Wait until no machine has anything of a cell."""
        until(lambda: not self._left(), f"nothing is left: {self._left()}", limit_s=15)

    def _left(self) -> list[str]:
        found = [what for machine in self._machines for what in machine.left()]
        return found + [str(path) for path in self.backing.glob("burstlab-*")]
