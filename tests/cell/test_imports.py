"""Every cell of a campaign pays for what `burstlab run` imports."""

import subprocess
import sys
from pathlib import Path

from .running import Place

# Loaded by none but who needs it: configuration, other hosts, a scheduler's job.
COSTLY = (
    *("dataclasses", "inspect", "socket", "asyncio", "platform"),
    *("pydantic", "yaml", "rich", "ClusterShell", "numpy"),
    *("burstlab.config", "burstlab.scheduler", "burstlab.agents", "burstlab.dataset"),
)
SCRIPT = """
import sys
from burstlab import cli
status = cli.main(sys.argv[2:])
print(*[name for name in sys.argv[1].split(",") if name in sys.modules])
sys.exit(status)
"""


def test_a_cell_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    place = Place(tmp_path)
    words = place.command("--storage", "pfs", "--pfs", place.root, run=["true"])[3:]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, ",".join(COSTLY), *words],
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
