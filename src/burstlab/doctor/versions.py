"""Which programs of an environment are here, and exactly which they are."""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from burstlab.doctor import pythons
from burstlab.doctor.environments import Command, Environment, find_command

SCHEMA = "burstlab.environment/1"
PATIENCE_S = 20


def missing(environment: Environment) -> list[str]:
    """One line for each command that is not found, and for Python packages that are not there."""
    lines = [
        f"{environment.name}: {command.name} is missing (Debian package {command.package or '?'})"
        for command in environment.missing_commands()
    ]
    lacking = pythons.problem(environment.name) if environment.own_python else None
    return (
        [*lines, f"{environment.name}: {lacking} (make setup PARTS={environment.name})"]
        if lacking
        else lines
    )


def describe(environment: Environment) -> Mapping[str, object]:
    """All commands with path, version and digest. Every command must be there."""
    commands = {command.name: _describe(command) for command in environment.commands}
    found: dict[str, object] = {"schema": SCHEMA, "environment": environment.name}
    found |= {"commands": commands}
    if environment.own_python:
        found |= {"python": pythons.describe(environment.name)}
    return found


def write(environment: Environment, output: Path) -> None:
    """Write the description as JSON, whole or not at all."""
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_name(f"{output.name}.partial")
    partial.write_text(json.dumps(describe(environment), indent=1) + "\n", encoding="utf-8")
    partial.replace(output)


def _describe(command: Command) -> Mapping[str, str | None]:
    """A version from the package that owns the file, else from the program itself if it tells.

    Many programs tell none (Montage's print their usage), so the file's digest is always there.
    """
    path = find_command(command.name)
    assert path is not None
    version = _package_version(command.package, path)
    source = f"package {command.package}" if version else None
    if version is None and command.version_arguments:
        version, source = _told(path, command.version_arguments), "the program"
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return {"path": path, "version": version, "version_from": source, "sha256": digest}


def _package_version(package: str, path: str) -> str | None:
    """The version of a Debian package if it owns this file (which may be a link to its own)."""
    version, files = _package(package) if package else (None, frozenset())
    return version if files & {path, str(Path(path).resolve()), _other_side(path)} else None


@cache
def _package(name: str) -> tuple[str | None, frozenset[str]]:
    """Version and files of an installed package; (None, nothing) where there is none."""
    if find_command("dpkg-query") is None:
        return None, frozenset()
    query = ["dpkg-query", "--show", "--showformat=${Version}\\n${db-fsys:Files}", name]
    listing = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if listing.returncode != 0:
        return None, frozenset()
    version, *files = listing.stdout.splitlines()
    return version, frozenset(file.strip() for file in files)


def _other_side(path: str) -> str:
    """Debian's packages may still say /bin for what is /usr/bin, and PATH the other way round."""
    return path.removeprefix("/usr") if path.startswith("/usr/") else f"/usr{path}"


def _told(path: str, arguments: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return next((line.strip() for line in done.stdout.splitlines() if line.strip()), None)
