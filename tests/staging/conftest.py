"""A small data set of files of many sizes, and `burstlab stage` as a user calls it."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from burstlab.dataset.manifest import members
from burstlab.dataset.writing import scan, write_manifest
from tests.polling import until

DEADLINE_S = 60.0
SIZES = (0, 1, 4096, 70_000, 1 << 20, (1 << 20) + 1, 3_000_000)


@dataclass
class Stage:
    """A data set of ``files`` (path -> content), and a place to stage it to."""

    root: Path
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def target(self) -> Path:
        return self.root / "out" / "target"

    @property
    def manifest(self) -> Path:
        return self.root / "manifest.json"

    def make(self, count: int, directories: int = 5) -> None:
        """Files of known sizes first, then of random ones, in a few directories."""
        chance = random.Random(count)
        for number in range(count):
            size = SIZES[number] if number < len(SIZES) else chance.randrange(120_000)
            path = f"d{number % directories}/e{number % 2}/f{number}"
            self.files[path] = chance.randbytes(size)
            (self.source / path).parent.mkdir(parents=True, exist_ok=True)
            (self.source / path).write_bytes(self.files[path])
        entries = scan(self.source, members(self.source, ["*/*/*"]))
        write_manifest(
            self.manifest, entries, name="some", source="synthetic", details={},
            root=self.source, patterns=["*/*/*"],
        )  # fmt: skip

    def command(self, *flags: str | Path) -> list[str]:
        base = [sys.executable, "-m", "burstlab", "stage", str(self.manifest), str(self.target)]
        return [*base, *map(str, flags)]

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "BURSTLAB_STATE": str(self.root / "state"), **more}

    def run(self, *flags: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        """To its end."""
        return subprocess.run(
            self.command(*flags), env=self.environment(**more), capture_output=True, text=True,
            timeout=DEADLINE_S,
        )  # fmt: skip

    def start(self, *flags: str | Path) -> subprocess.Popen[str]:
        """To be disturbed."""
        return subprocess.Popen(
            self.command(*flags), env=self.environment(), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def killed_at(self, files: int, *flags: str | Path, pause_s: float = 0.01) -> bool:
        """Start it, and kill it (SIGKILL) when so many files are there; whether it still ran."""
        running = self.start(*flags)
        until(
            lambda: running.poll() is not None or len(list(self.target.rglob("f*"))) >= files,
            f"{files} files",
            pause_s=pause_s,
        )
        running.kill()
        running.communicate()
        return running.returncode == -signal.SIGKILL

    def found(self, target: Path | None = None) -> dict[str, bytes]:
        """What is in the target under names of its own."""
        top = target or self.target
        return {
            str(path.relative_to(top)): path.read_bytes()
            for path in top.rglob("*")
            if path.is_file() and not path.name.endswith(".burstlab-partial")
        }

    def partials(self) -> list[Path]:
        return list(self.root.rglob("*.burstlab-partial"))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    made.make(60)
    return made
