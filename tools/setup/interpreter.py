"""Which Python the environment is made from, and what that Python can install with."""

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.setup.failure import PythonMissing

OLDEST = (3, 11)


@dataclass(frozen=True)
class Python:
    """An interpreter and its version, such as ``3.11.2``."""

    path: str
    version: str


def choose() -> Python:
    """The system's Python if it is new enough, else one that all users can run, else any.

    Cluster jobs of other users run the environment, and a Python below somebody's private home is
    of no use to them.
    """
    names = ["python3"] + [f"python3.{minor}" for minor in range(20, OLDEST[1] - 1, -1)]
    paths = [f"/usr/bin/{name}" for name in names] + [shutil.which(name) or "" for name in names]
    paths.append(getattr(sys, "_base_executable", sys.executable))
    found = [path for path in dict.fromkeys(paths) if path and os.access(path, os.X_OK)]
    private = None
    for path in found:
        python = _look_at(path)
        if python is not None and readable_by_all(Path(python.path)):
            return python
        private = private or python
    if private is None:
        raise PythonMissing(f"no Python >= {'.'.join(map(str, OLDEST))} on PATH")
    print(f"setup: {private.path} is the only Python found; other users can't run it", flush=True)
    return private


def can_install() -> bool:
    """Whether uv can be installed without Debian packages: by the pip there is, or by venv's."""
    return has_module("pip") or has_module("ensurepip")


def has_module(name: str) -> bool:
    """Whether the Python that runs this has a module."""
    return importlib.util.find_spec(name) is not None


def readable_by_all(path: Path) -> bool:
    """Whether any user may run this file: its own mode and that of every directory above."""
    path = path.resolve()
    if path.stat().st_mode & (stat.S_IROTH | stat.S_IXOTH) != stat.S_IROTH | stat.S_IXOTH:
        return False
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)


def _look_at(path: str) -> Python | None:
    """The base interpreter behind a path (not the environment it may be in), if new enough."""
    program = (
        "import sys; print(getattr(sys, '_base_executable', sys.executable)); "
        "print('.'.join(map(str, sys.version_info[:3]))); "
        f"sys.exit(sys.version_info < {OLDEST})"
    )
    done = subprocess.run(
        [path, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    if done.returncode != 0:
        return None
    return Python(*done.stdout.split("\n")[:2])
