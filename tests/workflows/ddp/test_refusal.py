"""Where PyTorch is not, which nothing installs unasked, a training says how to get it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.requirements import ROOT


def test_without_its_environment(tmp_path: Path) -> None:
    checkout, bare, cell = tmp_path / "checkout", tmp_path / "bin/python3", tmp_path / "cell"
    for name in ("src/burstlab", "workflows/ddp", "envs/torch"):
        shutil.copytree(ROOT / name, checkout / name)
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')  # it has no packages
    bare.chmod(0o755)
    cell.mkdir()
    given = {"PYTHON": sys.executable, "CELL_DIR": cell, "DATA": tmp_path, "STORAGE": "pfs"}
    done = subprocess.run(
        [checkout / "workflows/ddp/run"],
        env={
            "PATH": f"{bare.parent}:{os.defpath}",
            "PYTHONPATH": str(checkout / "src"),
            **{f"BURSTLAB_{name}": str(value) for name, value in given.items()},
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = f"{bare} has no package torch (make setup PARTS=torch, or conda.yaml in envs/torch)"
    assert (done.returncode, done.stderr) == (1, f"ddp: {told}\n")
    assert (cell / "failure.txt").read_text() == f"{told}\n"
