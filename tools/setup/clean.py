"""``make clean``: take back what ``make setup`` and the checks made. Results stay."""

import shutil
from pathlib import Path

from tools.setup import profiles

CACHES = (".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".venv")


def clean(root: Path) -> None:
    """Remove the environment, caches, byte code and the links to this checkout's profiles."""
    profiles.unlink_all(root)
    ours = [root / name for name in CACHES]
    ours += [root / "src" / "burstlab.egg-info"]
    ours += [root / "crates" / "burstio" / name for name in ("Cargo.lock", "target")]
    for top in ("src", "analysis", "tools", "tests", "lab", "benchmarks"):
        ours += (root / top).rglob("__pycache__")
    # The lock is held now, and others may be waiting for it.
    ours += [path for path in (root / ".tools").iterdir() if path.name != "setup.lock"]
    for path in ours:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    print("setup: cleaned (results/ and .snakemake/ stay)", flush=True)
