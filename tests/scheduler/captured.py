"""What schedulers' commands printed (captures/README.md)."""

import re
from pathlib import Path

from burstlab.scheduler.interface import Answer

CAPTURES = Path(__file__).parent / "captures"
_PARTS = re.compile(
    r"# cmd: (.*)\n# rc: (-?\d+)\n# --- stdout\n(.*?)# --- stderr\n(.*)", re.DOTALL
)  # fmt: skip


def captured(scheduler: str, name: str) -> Answer:
    """One call."""
    path = CAPTURES / scheduler / name
    if path.suffix == ".json":
        return Answer(path.read_text(), "", 0)
    parts = _PARTS.fullmatch(path.with_suffix(".txt").read_text())
    assert parts, path
    return Answer(parts[3], parts[4], int(parts[2]))
