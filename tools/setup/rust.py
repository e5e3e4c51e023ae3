"""The Rust toolchain that burstio is built with: rustup's, or whoever's is on PATH."""

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST = (1, 88)  # crates/burstio/Cargo.toml, rust-version


def find() -> Path | None:
    """The directory of a cargo and rustc that are new enough, the one on PATH first."""
    home = Path(os.environ.get("CARGO_HOME") or Path(os.environ.get("HOME", "/"), ".cargo"))
    on_path = shutil.which("cargo")
    places = [Path(on_path).parent] if on_path else []
    return next((place for place in [*places, home / "bin"] if _is_new_enough(place)), None)


def environment(directory: Path) -> dict[str, str]:
    """The variables under which this toolchain is used."""
    return {"PATH": f"{directory}:{os.environ.get('PATH', os.defpath)}"}


def _is_new_enough(directory: Path) -> bool:
    for name in ("cargo", "rustc"):
        try:
            told = subprocess.run(
                [directory / name, "--version"], capture_output=True, text=True, check=False
            ).stdout
        except OSError:
            return False
        version = re.match(rf"{name} (\d+)\.(\d+)", told)
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            return False
    return True
