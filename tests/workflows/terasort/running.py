"""Cells of TeraSort on virtual nodes, as `burstlab run` runs them, and what they leave behind."""

import csv
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from burstlab.process import Identity
from tests.cell.running import Place
from tests.requirements import ROOT

DIRECTORY = ROOT / "workflows" / "terasort"
DEADLINE_S = 400.0  # JVMs on a loaded machine
SMALL = {"size_mb": "1", "node_memory_mb": "2304", "container_memory_mb": "768"}


class TeraCell(Place):
    """One cell, in directories of its own."""

    def begin(
        self, nodes: int = 1, variables: dict[str, str] | None = None, **parameters: str
    ) -> "TeraCell":
        """Start it; ``variables`` are added to its environment."""
        labels = {"workload": "terasort", **SMALL, **parameters}
        flags: list[str | Path] = ["--storage", "pfs", "--pfs", self.root, "--nodes", str(nodes)]
        flags += [word for item in labels.items() for word in ("--label", "=".join(item))]
        command = self.command(*flags, "--check", DIRECTORY / "check", run=[DIRECTORY / "run"])
        environment = {**self.environment(), **(variables or {})}
        self._output = (self.root / "output").open("w+")
        self._child = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=self._output, stderr=self._output
        )
        return self

    def status(self) -> int:
        """Its exit status, once it has ended."""
        try:
            return self._child.wait(DEADLINE_S)
        finally:
            self.stop()

    def stop(self) -> None:
        """End it in order, if it still runs."""
        if self._child.poll() is None:
            self._child.terminate()
            self._child.wait(60)
        self._output.close()

    def reason(self) -> str:
        """Of the record."""
        record = self.record()
        assert record is not None, self.said()
        return str(record["reason"])

    def said(self) -> str:
        """All it printed."""
        return (self.root / "output").read_text()

    @property
    def work(self) -> Path:
        """What it has on the storage; the path is known once it is there."""
        [path] = self.root.glob("burstlab-*/data/work")
        return path

    def await_(self, done: Callable[[], object], what: str) -> None:
        """Poll until ``done``, as long as the cell runs."""
        deadline = time.monotonic() + DEADLINE_S
        while not done():
            assert self._child.poll() is None, f"ended before {what}: {self.said()}"
            assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}"
            time.sleep(0.02)

    def has(self, path: str) -> bool:
        """Whether there is such a file on its storage."""
        return any(self.root.glob(f"burstlab-*/data/work/{path}"))

    def daemons(self, word: str) -> list[Identity]:
        """Processes of this cell whose command line has ``word``."""
        found = []
        for pid in self.processes():
            try:
                if word in Path(f"/proc/{pid}/cmdline").read_text(errors="replace"):
                    found.append(Identity.of(pid))
            except OSError:
                continue
        return found

    def operations(self) -> list[dict[str, str]]:
        with (self.cell / "operations.csv").open(newline="") as rows:
            return list(csv.DictReader(rows))


def without_java(directory: Path) -> str:
    """PATH with everything but Java."""
    directory.mkdir()
    for place in os.environ["PATH"].split(":"):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            link = directory / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return str(directory)
