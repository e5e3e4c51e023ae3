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

from tests.requirements import ROOT

DEADLINE_S = 120.0
WORKFLOW = ROOT / "workflows" / "mxnet"
TINY = {"network": "mobilenet0.25", "batch": "4", "side": "32", "format": "jpeg"}
IMAGES = {"classes": 4, "files": 32, "mean_bytes": 4000}


def labels(**parameters: str) -> list[str]:
    """Flags that give the workload its parameters."""
    given = {"workload": "mxnet", **TINY, **parameters}
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

    def command(self, **parameters: str) -> list[str]:
        """The images come without the flag --dataset, with which a cell looks at a few files
        first; a manifest beside them is handed to the workload as it would be."""
        scratch = self.root / "scratch"
        scratch.mkdir(exist_ok=True)
        words = [sys.executable, "-m", "burstlab", "run", "--storage", "nodelocal", "--virtual"]
        words += ["--nodes", "2", "--cores-per-node", "1", "--local-dir", str(scratch)]
        words += ["--cell-dir", str(self.cell), *labels(**parameters)]
        words += ["--check", str(WORKFLOW / "check"), "--", "env", f"BURSTLAB_DATA={self.images}"]
        if self.manifest.exists():
            words.append(f"BURSTLAB_MANIFEST={self.manifest}")
        return [*words, str(WORKFLOW / "run")]

    def environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith("MXNET_")}

    def run(self, **parameters: str) -> dict[str, Any]:
        """Run to the end; its record, whatever became of it."""
        subprocess.run(self.command(**parameters), env=self.environment(), timeout=DEADLINE_S)
        return self.record()

    def start(self, **parameters: str) -> subprocess.Popen[bytes]:
        """Start, to be disturbed."""
        return subprocess.Popen(self.command(**parameters), env=self.environment())

    def record(self) -> dict[str, Any]:
        [path] = [p for n in ("record.json", "failed.json") if (p := self.cell / n).exists()]
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def log(self) -> str:
        return (self.cell / "workload.log").read_text()


def workers(cell: Path) -> dict[str, int]:
    """Pids of mpirun ("mpirun") and of the ranks ("0", "1") of the cell in that directory."""
    found = {}
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            lines = (proc / "environ").read_bytes().decode(errors="replace").split("\0")
            words = (proc / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue  # it ended meanwhile
        variables = dict(line.partition("=")[::2] for line in lines)
        if variables.get("BURSTLAB_CELL_DIR") != str(cell):
            continue
        if str(WORKFLOW / "train.py") in words[1:2]:
            found[variables["OMPI_COMM_WORLD_RANK"]] = int(proc.name)
        elif Path(words[0]).name == "mpirun":
            found["mpirun"] = int(proc.name)
    return found


def until(done: Callable[[], object], what: str) -> None:
    """Poll until ``done``."""
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.02)
