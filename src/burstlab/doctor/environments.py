"""The environments under ``envs/``: one directory for each thing that needs programs of others.

``envs/<name>/debian.txt`` lists Debian packages, one a line; ``envs/<name>/commands.txt`` lists the
commands that must be found, one a line with the package each comes from and, where the command can
tell its version, the arguments that make it do so; ``envs/<name>/conda.yaml`` is for clusters.
``envs/<name>/requirements.lock`` is for a Python environment of its own (burstlab.doctor.pythons).
``envs/<name>/optional.txt`` says why nothing makes it unasked.
``#`` starts a comment. Standard library only: ``make setup`` reads these before anything else is
there.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OURS = ("burstlab", "setup")  # locks of burstlab's own environment
# Debian keeps daemons here, off an ordinary user's PATH.
SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True)
class Command:
    """One program: its name, its Debian package, and how to ask it for its version, if it can."""

    name: str
    package: str
    version_arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Environment:
    """What one directory of ``envs/`` asks for."""

    name: str
    packages: tuple[str, ...]
    commands: tuple[Command, ...]
    conda: Path | None
    own_python: bool = False
    optional: str = ""  # why one has to ask for it

    def missing_commands(self) -> tuple[Command, ...]:
        """The commands that are found nowhere on this machine's search path."""
        return tuple(command for command in self.commands if find_command(command.name) is None)


def find_command(name: str) -> str | None:
    """The path of a command on PATH or among the system's daemons, or None."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_DIRECTORIES])
    return shutil.which(name, path=path)


def of_workload(root: Path, name: str) -> str:
    """The directory of envs/ that a workload's programs come from, where it needs any: what
    workflows/NAME/environment.txt names, else its own name's."""
    other = root / "workflows" / name / "environment.txt"
    return other.read_text(encoding="utf-8").strip() if other.is_file() else name


def load(envs: Path) -> dict[str, Environment]:
    """All environments below a directory that list packages or commands, by name."""
    return {
        directory.name: _load_one(directory)
        for directory in sorted(envs.iterdir())
        if (directory / "debian.txt").is_file() or (directory / "commands.txt").is_file()
    }


def installed_packages(names: list[str]) -> set[str] | None:
    """Which of these Debian packages are installed; None where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return None
    if not names:
        return set()
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\\n", *names],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # one line for each package dpkg has never heard of
        text=True,
        check=False,
    ).stdout
    rows = (line.split() for line in listing.splitlines())
    return {row[0] for row in rows if row[1:] == ["installed"]}


def _load_one(directory: Path) -> Environment:
    conda, optional = directory / "conda.yaml", directory / "optional.txt"
    return Environment(
        name=directory.name,
        packages=tuple(words[0] for words in _lines(directory / "debian.txt")),
        commands=tuple(
            Command(words[0], words[1] if len(words) > 1 else "", tuple(words[2:]))
            for words in _lines(directory / "commands.txt")
        ),
        conda=conda if conda.is_file() else None,
        own_python=(directory / "requirements.lock").is_file() and directory.name not in OURS,
        optional=optional.read_text(encoding="utf-8").strip() if optional.is_file() else "",
    )


def _lines(path: Path) -> list[list[str]]:
    """The words of each line that is not empty or a comment."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [words for line in lines if (words := line.split("#")[0].split())]
