"""What all ranks learn from, and what they do when that fails, in PyTorch's own Python."""

import os
import subprocess
from pathlib import Path

import pytest

from burstlab.doctor import pythons
from burstlab.launch import ranks
from tests.requirements import ROOT

pytestmark = [pytest.mark.requires("torch"), pytest.mark.slow]


def test_ranks_in_pytorchs_own_python(tmp_path: Path) -> None:
    python = pythons.python("torch")
    assert python is not None
    path = [ROOT, ROOT / "src", ROOT / "workflows" / "ddp"]
    own = {"PYTHONPATH": ":".join(map(str, path)), "OMP_NUM_THREADS": "1"}
    own |= {"BURSTLAB_HOST": "localhost", "BURSTLAB_LOCAL": str(tmp_path)}
    done = subprocess.run(
        [
            "mpirun",
            *ranks.options(),
            "-np",
            "2",
            python,
            "-B",
            "-m",
            "tests.workflows.ddp.in_torch",
        ],
        cwd=ROOT,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
