"""Hadoop's jars, which `make setup` gets for the workload terasort.

Standard library only: ``make setup`` reads this before anything else is there.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GIVEN = "HADOOP_JARS"  # a directory of one's own, with the jars of envs/terasort/jars.sha256


def directory(root: Path = ROOT) -> Path:
    """Where they are, or would be; the same path on every host of a cell."""
    return Path(os.environ.get(GIVEN) or root / ".tools" / "hadoop" / "jars")


def problem() -> str | None:
    """Why they can't be used here, or None."""
    here = directory()
    return None if any(here.glob("hadoop-common-*.jar")) else f"no Hadoop in {here}"
