"""Checks that run in another Python than the tests: that of envs/NAME."""

import os
import subprocess
from pathlib import Path
from types import ModuleType

from burstlab.doctor import pythons
from tests.requirements import ROOT


def checks(module: ModuleType) -> list[str]:
    """Names of its functions check_*."""
    return [name for name in vars(module) if name.startswith("check_")]


def check_in(environment: str, module: ModuleType, check: str, directory: Path) -> None:
    """Run one of them in that environment's Python; its error fails the test."""
    python = pythons.python(environment)
    assert python is not None
    command = [python, "-W", "ignore::DeprecationWarning", "-m", module.__name__]
    done = subprocess.run(
        [*command, check, directory],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
