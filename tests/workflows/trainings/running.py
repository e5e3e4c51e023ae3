"""Trains a tiny network on a few tiny images in a cell, as `burstlab run` does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.process import Identity
from tests.requirements import ROOT

DEADLINE_S = 120.0
IMAGES = {"classes": 4, "files": 32, "mean_bytes": 4000}
ENDED = "the workload ended with exit status"


@dataclass(frozen=True)
class Workload:
    """A training, and the parameters with which it is tiny."""

    name: str
    tiny: Mapping[str, str]

    @property
    def directory(self) -> Path:
        return ROOT / "workflows" / self.name

    def labels(self, **parameters: str) -> list[str]:
        """Flags that give the workload its parameters."""
        given = {"workload": self.name, **self.tiny, **parameters}
        return [word for pair in given.items() for word in ("--label", "=".join(pair))]


_TINY = {"batch": "4", "side": "32", "epochs": "2", "ranks": "1"}
MXNET = Workload("mxnet", {**_TINY, "network": "mobilenet0.25", "format": "jpeg"})
_PIPELINE = {"mode": "direct", "generation": "1", "copiers": "1"}
CHAINERMN = Workload("chainermn", {**_TINY, "network": "small", **_PIPELINE})
DDP = Workload("ddp", CHAINERMN.tiny)


@dataclass(frozen=True)
class Place:
    """A cell on two virtual nodes and the images it reads."""

    root: Path
    images: Path
    workload: Workload

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
        words += ["--cell-dir", str(self.cell), *self.workload.labels(**parameters)]
        words += ["--check", str(self.workload.directory / "check"), "--"]
        words += ["env", f"BURSTLAB_DATA={self.images}"]
        if self.manifest.exists():
            words.append(f"BURSTLAB_MANIFEST={self.manifest}")
        return [*words, str(self.workload.directory / "run")]

    def environment(self) -> dict[str, str]:
        own = f"{self.workload.name}_".upper()
        return {k: v for k, v in os.environ.items() if not k.startswith(own)}

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
    """Pids of all processes of the cell in that directory: which rank each is, or its program."""
    found = {}
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            lines = (proc / "environ").read_bytes().decode(errors="replace").split("\0")
            words = (proc / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue  # it ended meanwhile
        variables = dict(line.partition("=")[::2] for line in lines)
        if variables.get("BURSTLAB_CELL_DIR") == str(cell):
            trains = Path(words[1] if words[1:] else "").name == "train.py"
            program = Path(words[0]).name
            found[int(proc.name)] = variables["OMPI_COMM_WORLD_RANK"] if trains else program
    return found


def process(cell: Path, which: str) -> int:
    """Pid of a rank or a program itself, which is older than the processes of its pipeline."""
    ours = [Identity.of(pid) for pid, what in processes(cell).items() if what == which]
    return min(ours, key=lambda one: one.start_ticks).pid
