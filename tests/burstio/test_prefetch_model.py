"""The queueing logic through every interleaving of its threads (crates/burstio/tests)."""

import os
import subprocess
from pathlib import Path

import pytest

from tools.setup import rust

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(1200)  # loom's crates are built for it
@pytest.mark.requires("burstio")
def test_nobody_sleeps_for_ever() -> None:
    toolchain = rust.find()
    assert toolchain, "burstio was built without a toolchain"
    crate = ROOT / "crates/burstio/Cargo.toml"
    command = [toolchain / "cargo", "test", "--locked", "--quiet", "--manifest-path", crate]
    # of its own: other flags would have the everyday tests built anew
    places = {"CARGO_TARGET_DIR": str(ROOT / ".tools/cargo-model"), "RUSTFLAGS": "--cfg loom"}
    done = subprocess.run(
        [*command, "--test", "prefetch_model"],
        env={**os.environ, **rust.environment(toolchain), **places},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
