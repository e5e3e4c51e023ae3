"""Runs `burstlab run` as a user does, and tells what it left behind."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.mounts import mounts

DEADLINE_S = 60.0


@dataclass
class Place:
    """A private state directory, scratch and cell directory for one test."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def cell(self) -> Path:
        return self.root / "cell"

    def command(self, *flags: str | Path, run: Sequence[str | Path]) -> list[str]:
        """`burstlab run` on one virtual node of this machine, unless ``flags`` say otherwise."""
        self.scratch.mkdir(exist_ok=True)
        base = [sys.executable, "-m", "burstlab", "run", "--virtual", "--nodes", "1"]
        base += ["--local-dir", str(self.scratch), "--cell-dir", str(self.cell)]
        return [*base, *map(str, flags), "--", *map(str, run)]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "BURSTLAB_STATE": str(self.state)}

    def run(
        self, *flags: str | Path, run: Sequence[str | Path]
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        command = self.command(*flags, run=run)
        return subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, timeout=DEADLINE_S
        )

    def start(self, *flags: str | Path, run: Sequence[str | Path]) -> subprocess.Popen[str]:
        """Start, to be disturbed; stderr is a pipe."""
        command = self.command(*flags, run=run)
        return subprocess.Popen(command, env=self.environment(), stderr=subprocess.PIPE, text=True)

    def reap(self) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "burstlab", "reap"]
        return subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, timeout=DEADLINE_S
        )

    def record(self) -> dict[str, Any] | None:
        """The record, whichever there is; two at once are an error."""
        found = [p for n in ("record.json", "failed.json") if (p := self.cell / n).exists()]
        assert len(found) < 2, found
        return json.loads(found[0].read_text()) if found else None

    def left_behind(self) -> list[str]:
        """Processes, mounts, scratch and leases of this place."""
        left = [
            f"mount {m.path}"
            for m in mounts()
            if m.path.startswith(f"{self.root}/") and m.path != str(self.scratch)
        ]
        left += [f"scratch {path}" for path in self.scratch.glob("*")]
        left += [f"lease {path}" for path in self.state.glob("*")]
        return left + [f"process {pid}" for pid in self.processes()]

    def processes(self) -> list[int]:
        """Whoever carries this place's state directory in its environment, or works in it."""
        mark, found = f"BURSTLAB_STATE={self.state}".encode() + b"\0", []
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or int(entry.name) == os.getpid():
                    continue
                running = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
                if running and mark in (entry / "environ").read_bytes() + b"\0":
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def reach(cell: subprocess.Popen[str], phase: str) -> None:
    """Read what the cell says until it enters ``phase``."""
    assert cell.stderr is not None
    for line in cell.stderr:
        if f" {phase} " in f"{line} " and "..." in line:
            return
    raise AssertionError(f"the cell ended before {phase}")
