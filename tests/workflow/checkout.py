"""A checkout of the workflow to run Snakemake in, and to change."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "Snakefile", "rules", "profiles", "envs", "workflows", "analysis", "report", "config", "src",
)  # fmt: skip
DEADLINE_S = 240


@dataclass(frozen=True)
class Run:
    """What one `snakemake` said."""

    status: int
    text: str

    @property
    def jobs(self) -> dict[str, int]:
        """Planned jobs by rule, of the table of job statistics; empty when nothing was to do."""
        table = re.search(r"^job +count\n[- ]+\n((?:\S+ +\d+\n)+)", self.text, re.MULTILINE)
        rows = table[1].splitlines() if table else []
        return {name: int(count) for name, count in (row.split() for row in rows)}

    @property
    def nothing_to_do(self) -> bool:
        """Whether Snakemake said so."""
        return "Nothing to be done" in self.text


@dataclass(frozen=True)
class Checkout:
    """A copy of what Snakemake reads, with the user's own home beside it."""

    root: Path
    home: Path

    @classmethod
    def make(cls, directory: Path) -> "Checkout":
        """Below ``directory``, with the profiles linked as `make setup` links them."""
        checkout = cls(directory / "checkout", directory / "home")
        checkout.root.mkdir()
        for name in COPIED:
            source, target = ROOT / name, checkout.root / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        command = checkout.home / "bin/burstlab"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m burstlab "$@"\n')
        command.chmod(0o755)
        links = checkout.home / ".config/snakemake"
        links.mkdir(parents=True)
        for profile in (checkout.root / "profiles").iterdir():
            (links / profile.name).symlink_to(profile)
        return checkout

    def environment(self) -> dict[str, str]:
        """Of a user who has this checkout's environment active and no other configuration."""
        kept = {name: text for name, text in os.environ.items() if name != "BURSTLAB_2MASS"}
        return {
            **kept,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "PATH": f"{self.home}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.root / "src"),
        }

    def shell(self, line: str) -> Run:
        """One line as typed at the root of the checkout."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_S,
        )
        return Run(done.returncode, done.stdout)

    def change(self, path: str, old: str, new: str) -> None:
        """Edit one place of a file."""
        text = (self.root / path).read_text()
        assert text.count(old) == 1, f"{path}: {old!r}"
        (self.root / path).write_text(text.replace(old, new))
