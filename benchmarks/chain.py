"""What a short cell costs in a chain on the lab's Slurm, from one record to the next.

    sudo PYTHONPATH=src:. python benchmarks/chain.py [--cells 6] [--user root]

Each cell waits for the one before it and runs `true` on two nodes. Printed for each: seconds from
submission to the job's start (Slurm), of the job without the cell (Snakemake inside of it), of
the cell itself, from the job's end to its being told (Snakemake's polling), and from its submission
to the next one's, which is the cost of a cell; then medians, and the load of this machine.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator
from itertools import pairwise

from tests.lab.cluster import Cluster
from tests.scheduler.workflow import Workflow, finish

COLUMNS = ("queued", "snakemake", "cell", "told", "to next")


def main() -> int:
    """Run the chain and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=6)
    parser.add_argument("--user", default="lab")
    arguments = parser.parse_args()
    os.environ.setdefault("BURSTLAB_STATE", f"/var/tmp/burstlab-{os.getuid()}")
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "2")
        flow = Workflow(cluster, "chain", user=arguments.user)
        targets = [""]
        for number in range(1, arguments.cells + 1):
            targets.append(flow.cell(f"short-2-{number}", "true", after=targets[-1]))
        driver = flow.snakemake(targets[-1:])
        said = finish(driver, limit_s=600)
        if driver.returncode != 0:
            print(said, file=sys.stderr)
            return 1
        show(list(measured(flow, targets[1:])))
    return 0


def measured(flow: Workflow, targets: list[str]) -> Iterator[tuple[float, ...]]:
    """Seconds of each part, cell by cell; the last cell has no next."""
    submitted = [float(str(flow.job(target)["submitted_s"])) for target in targets]
    for target, (this, following) in zip(targets, pairwise(submitted), strict=False):
        where = flow.root / ".burstlab/jobs" / str(flow.job(target)["name"])
        words = dict(
            line.split(" ", 1)
            for kind in ("start", "exit")
            for line in (where / f"1.{kind}").read_text().splitlines()
        )
        start, end = float(words["start"]), float(words["end"])
        told = (where / "job.json").stat().st_mtime
        spans = json.loads((flow.root / target).read_text())["spans"]
        cell = spans[-1]["start_s"] + spans[-1]["elapsed_s"] - spans[0]["start_s"]
        yield start - this, end - start - cell, cell, told - end, following - this


def show(rows: list[tuple[float, ...]]) -> None:
    """The table."""
    print(" ".join(f"{name:>9}" for name in COLUMNS))
    for row in rows:
        print(" ".join(f"{value:9.2f}" for value in row))
    medians = [statistics.median(column) for column in zip(*rows, strict=True)]
    print(" ".join(f"{value:9.2f}" for value in medians), "median")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    sys.exit(main())
