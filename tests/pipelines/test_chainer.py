"""The Chainer front end against MultiprocessIterator, in Chainer's own Python."""

import os
import subprocess
from pathlib import Path

import pytest

from burstlab.doctor import pythons
from tests.pipelines import in_chainer

pytestmark = pytest.mark.requires("chainer", "burstio")

CHECKS = [name for name in vars(in_chainer) if name.startswith("check_")]
SLOW = ("check_a_trainer_trains", "check_every_mode_steps_like_multiprocess_iterator")


@pytest.mark.parametrize(
    "check", [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in CHECKS]
)
def test_chainer(check: str, tmp_path: Path) -> None:
    python = pythons.python("chainer")
    assert python is not None
    command = [python, "-W", "ignore::DeprecationWarning", "-m", "tests.pipelines.in_chainer"]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [*command, check, tmp_path],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'src'}"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
