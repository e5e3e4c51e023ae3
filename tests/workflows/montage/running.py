"""Runs workflows/montage/run as `burstlab run` does, on few small tiles."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.requirements import ROOT

DIRECTORY = ROOT / "workflows" / "montage"
DEADLINE_S = 120.0
PLAIN = ("--engine", "rake")


@dataclass(frozen=True)
class Workplace:
    """A cell: its work directory, its own directory, and the tiles it reads."""

    root: Path
    tiles: Path

    @property
    def mount(self) -> Path:
        return self.root / "mount"

    @property
    def cell(self) -> Path:
        return self.root / "cell"

    def environment(self, cores: int, variables: dict[str, str]) -> dict[str, str]:
        """What burstlab sets; MONTAGE_GRID and its like, and PWRAKE, only as a test wants them."""
        self.mount.mkdir(exist_ok=True)
        self.cell.mkdir(exist_ok=True)
        hosts = self.root / "hosts"
        hosts.write_text("localhost\n")
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("MONTAGE_", "PWRAKE"))
        }
        return {
            **inherited,
            "BURSTLAB_MOUNT": str(self.mount),
            "BURSTLAB_DATA": str(self.tiles),
            "BURSTLAB_CELL_DIR": str(self.cell),
            "BURSTLAB_HOSTFILE": str(hosts),
            "BURSTLAB_NODES": "1",
            "BURSTLAB_CORES": str(cores),
            **variables,
        }

    def run(
        self, *arguments: str, cores: int = 2, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end; plain rake unless the arguments say otherwise."""
        return subprocess.run(
            [DIRECTORY / "run", *(arguments or PLAIN)],
            env=self.environment(cores, variables),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start with two cores, to be disturbed; these very arguments."""
        return subprocess.Popen(
            [DIRECTORY / "run", *arguments],
            env=self.environment(2, variables),
            stderr=subprocess.PIPE,
            text=True,
        )

    def check(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """The verdict on the mosaic."""
        return subprocess.run(
            [DIRECTORY / "check"],
            env=self.environment(2, {"BURSTLAB_PYTHON": sys.executable, **variables}),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def operations(self) -> list[dict[str, str]]:
        with (self.cell / "operations.csv").open(newline="") as rows:
            return list(csv.DictReader(rows))

    def facts(self) -> dict[str, str]:
        facts: dict[str, str] = json.loads((self.cell / "facts.json").read_text())
        return facts


def pwrake() -> dict[str, str]:
    """Where the tests' Pwrake is, for Workplace.run; empty where PATH has it."""
    return {"PWRAKE": os.environ["PWRAKE"]} if "PWRAKE" in os.environ else {}


def replace_program(directory: Path, name: str, script: str) -> str:
    """PATH with one Montage program replaced by a shell script; it finds the real one as $REAL."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\nREAL=$(PATH=${{PATH#*:}} command -v {name})\n{script}\n")
    path.chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"
