"""How long a lab takes to come up, lose a node, get it back, and go down.

python benchmarks/lab_up.py [--nodes 4] [--runs 5] [-- --accounting ...]   (root)

Each run is one lab in a temporary directory; what follows -- is handed to `burstlab lab up`.
Times are wall seconds of the whole command, Python's start included.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NODE = "node01"


def main() -> int:
    """Print a line for each command: median and range of its wall time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("up", nargs="*", metavar="-- OPTION", help="of burstlab lab up")
    arguments = parser.parse_args()
    steps = {"up": ["--nodes", str(arguments.nodes), *arguments.up], "kill": [NODE]}
    steps |= {"start": [NODE], "down": []}
    seconds: dict[str, list[float]] = {step: [] for step in steps}
    with tempfile.TemporaryDirectory(prefix="burstlab-lab-up-", dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)
        for _ in range(arguments.runs):
            for step, options in steps.items():
                seconds[step].append(_timed(step, [*options, "--directory", f"{directory}/lab"]))
    load = os.getloadavg()[0]
    print(
        f"{arguments.nodes} nodes {' '.join(arguments.up)}: {arguments.runs} runs, load {load:.1f}"
    )
    for step, values in seconds.items():
        median = statistics.median(values)
        print(f"{step:6} {median:6.2f} s   ({min(values):.2f} to {max(values):.2f})")
    return 0


def _timed(step: str, options: list[str]) -> float:
    command = [sys.executable, "-m", "burstlab", "lab", step, *options]
    path = f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"
    began = time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path}
    )
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
