"""CPU that one cell costs beyond its workload: Snakemake's share and burstlab's.

python benchmarks/noop_cell.py [--cells 100] [--runs 5]

Campaigns of few and of many cells that do nothing (`true`) run in turns on storage `pfs`, which is
a plain directory here; the difference, divided by the number of further cells, leaves out what is
paid once. Beside it: Snakemake's own rule with an empty shell command, and `burstlab run` alone.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

FEW = 10
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
RUN = "burstlab run --storage pfs --pfs {pfs} --virtual --nodes 1 --cell-dir cells/{cell} -- true"
SNAKEFILE = """\
rule all:
    input: expand("cells/{{cell}}/record.json", cell=range({cells}))
rule cell:
    output: "cells/{{cell}}/record.json"
    log: "cells/{{cell}}/run.log"
    shell: {command!r}
"""


def cpu_ms(command: list[str], directory: Path) -> float:
    """User and system time of a command and of all it has waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, cwd=directory, env=ENVIRONMENT, check=True, capture_output=True, timeout=600
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def campaign(cells: int, command: str) -> float:
    """CPU [ms] of a Snakemake run of so many jobs."""
    with tempfile.TemporaryDirectory(prefix="burstlab-noop-") as name:
        directory = Path(name)
        (directory / "pfs").mkdir()
        (directory / "Snakefile").write_text(SNAKEFILE.format(cells=cells, command=command))
        return cpu_ms(["snakemake", "--cores", "1", "--quiet", "all"], directory)


def per_cell(cells: int, command: str) -> float:
    """CPU [ms] of one cell, from a small and a large campaign."""
    return (campaign(FEW + cells, command) - campaign(FEW, command)) / cells


def alone() -> float:
    """CPU [ms] of `burstlab run` without Snakemake."""
    with tempfile.TemporaryDirectory(prefix="burstlab-noop-") as name:
        (Path(name) / "pfs").mkdir()
        return cpu_ms(RUN.format(pfs="pfs", cell="1").split(), Path(name))


def main() -> int:
    """Print median and range of each; the runs of all kinds take turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    empty = "touch {output} 2>{log}"
    cell = RUN.replace("{pfs}", "pfs").replace("{cell}", "{wildcards.cell}") + " 2>{log}"
    kinds: dict[str, Callable[[], float]] = {
        "snakemake, empty rule": lambda: per_cell(arguments.cells, empty),
        "snakemake, burstlab cell": lambda: per_cell(arguments.cells, cell),
        "burstlab run alone": lambda: statistics.median(alone() for _ in range(10)),
    }
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    load = os.getloadavg()[0]
    for _ in range(arguments.runs):
        for kind, measure in kinds.items():
            taken[kind].append(measure())
    print(f"CPU per cell, {arguments.cells} cells a run, {arguments.runs} runs in turns")
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {load:.1f} at the start")
    for kind, values in taken.items():
        low, median, high = min(values), statistics.median(values), max(values)
        print(f"{kind:26} {median:6.1f} ms  [{low:.1f} .. {high:.1f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
