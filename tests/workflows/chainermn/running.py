"""Trains a tiny network on a few tiny images in a cell, as `burstlab run` does."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.process import Identity
from tests.requirements import ROOT

DEADLINE_S = 120.0
WORKFLOW = ROOT / "workflows" / "chainermn"
TINY = {"network": "small", "batch": "4", "side": "32", "epochs": "2", "ranks": "1"}
TINY |= {"mode": "direct", "generation": "1", "copiers": "1"}
IMAGES = {"classes": 4, "files": 32, "mean_bytes": 4000}
ENDED = "the workload ended with exit status"


def labels(**parameters: str) -> list[str]:
    """Flags that give the workload its parameters."""
    given = {"workload": "chainermn", **TINY, **parameters}
    return [word for pair in given.items() for word in ("--label", "=".join(pair))]


@dataclass(frozen=True)
class Place:
    """A cell on two virtual nodes and the images it reads."""

    root: Path
    images: Path

    @property
    def cell(self) -> Path:
        return self.root / "cell"

    @property
    def manifest(self) -> Path:
        return self.root / "manifest.json"

    def command(self, storage: str = "nodelocal", **parameters: str) -> list[str]:
        """The images come without the flag --dataset, with which a cell looks at a few files
        first; a manifest beside them is handed to the workload as it would be."""
        scratch, pfs = self.root / "scratch", self.root / "pfs"
        for directory in (scratch, pfs):
            directory.mkdir(exist_ok=True)
        words = [sys.executable, "-m", "burstlab", "run", "--storage", storage, "--virtual"]
        words += ["--pfs", str(pfs)] if storage == "pfs" else []
        words += ["--nodes", "2", "--cores-per-node", "1", "--local-dir", str(scratch)]
        words += ["--cell-dir", str(self.cell), *labels(**parameters)]
        words += ["--check", str(WORKFLOW / "check"), "--", "env", f"BURSTLAB_DATA={self.images}"]
        if self.manifest.exists():
            words.append(f"BURSTLAB_MANIFEST={self.manifest}")
        return [*words, str(WORKFLOW / "run")]

    def environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith("CHAINERMN_")}

    def run(self, storage: str = "nodelocal", **parameters: str) -> dict[str, Any]:
        """Run to the end; its record, whatever became of it."""
        command = self.command(storage, **parameters)
        subprocess.run(command, env=self.environment(), timeout=DEADLINE_S)
        return self.record()

    def start(self, **parameters: str) -> subprocess.Popen[bytes]:
        """Start, to be disturbed."""
        return subprocess.Popen(self.command(**parameters), env=self.environment())

    def record(self) -> dict[str, Any]:
        [path] = [p for n in ("record.json", "failed.json") if (p := self.cell / n).exists()]
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def ranks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.cell / "ranks.json").read_text())
        return found

    def log(self) -> str:
        path = self.cell / "workload.log"
        return path.read_text() if path.exists() else ""


def processes(cell: Path) -> dict[int, str]:
    """Pids of all processes of the cell in that directory, with the rank of each ("" for none)."""
    found = {}
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            lines = (proc / "environ").read_bytes().decode(errors="replace").split("\0")
            words = (proc / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue  # it ended meanwhile
        variables = dict(line.partition("=")[::2] for line in lines)
        if variables.get("BURSTLAB_CELL_DIR") == str(cell):
            trains = str(WORKFLOW / "train.py") in words[1:2]
            found[int(proc.name)] = variables["OMPI_COMM_WORLD_RANK"] if trains else ""
    return found


def rank_process(cell: Path, rank: str) -> int:
    """Pid of a rank itself, which is older than the processes of its pipeline."""
    ours = [Identity.of(pid) for pid, whose in processes(cell).items() if whose == rank]
    return min(ours, key=lambda one: one.start_ticks).pid


def until(done: Callable[[], object], what: str) -> None:
    """Poll until ``done``."""
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.05)
