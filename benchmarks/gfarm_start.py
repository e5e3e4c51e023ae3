"""How long one host takes to have a Gfarm, seen to work, and to be rid of it.

python benchmarks/gfarm_start.py [--runs 20] [--files 1000] [--local-dir DIR]
python benchmarks/gfarm_start.py --lab [--runs 5]   (root)

`start` ends when a file was written through the mount, found on this host's disk and read back;
its steps are indented below it. `verify` compares the metadata of all files with the disk. The
first run, which finds the programs' files cold or warm as they are, counts like the others.

With --lab the same of every storage that a lab has, on 1, 2 and 4 of its nodes: the spans
`allocation` (the hosts are reached), `provision` (from start to probed mount) and `teardown` of
cells that do nothing, in one job.
"""

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burstlab.lease import Lease
from burstlab.mounts import mount_of
from burstlab.nodes import VirtualNodes
from burstlab.pfs.site import MountedPfs
from burstlab.storage.gfarm import GfarmStorage
from burstlab.storage.interface import Context

ROOT = Path(__file__).resolve().parent.parent
STORAGES, NODES = ("pfs", "nodelocal", "gfarm"), (1, 2, 4)
SPANS = ("allocation", "provision", "teardown")
STEPS = ("start_metadata_server", "start_filesystem_node", "meet")


class TimedNodes(VirtualNodes):
    """Keeps the seconds of each action."""

    def __init__(self, directory: Path, lease: Lease) -> None:
        super().__init__(directory, 1, lease)
        self.elapsed_s: dict[str, float] = {}

    def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        """See Nodes."""
        began = time.perf_counter()
        try:
            return super().call(action, **arguments)
        finally:
            self.elapsed_s[action.partition(":")[2]] = time.perf_counter() - began


def main() -> None:
    """Print a line for each step: median and range of its wall time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lab", action="store_true", help="every storage, on a lab's nodes")
    parser.add_argument("--runs", type=int, help="default: 20, on a lab 5")
    parser.add_argument("--files", type=int, default=1000, help="written before verify")
    parser.add_argument("--local-dir", default=tempfile.gettempdir(), type=Path)
    arguments = parser.parse_args()
    if arguments.lab:
        on_a_lab(arguments.runs or 5)
        return
    count = arguments.runs or 20
    runs = [one_run(arguments.local_dir, arguments.files) for _ in range(count)]
    print(
        f"conditions: {count} runs of 1 host, {arguments.files} files of 4 KiB on "
        f"{mount_of(arguments.local_dir).type}; {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f}, Linux {platform.release()}, user {os.getuid()}"
    )
    for step in runs[0]:
        tell(step, [run[step] for run in runs])


def tell(what: str, seconds_each: list[float]) -> None:
    """A line: median and range."""
    values = [1e3 * seconds for seconds in seconds_each]
    spread = f"({min(values):.1f} to {max(values):.1f})"
    print(f"{what:24} {statistics.median(values):8.1f} ms   {spread}")


def on_a_lab(runs: int) -> None:
    """A line for each storage, span and number of nodes."""
    with tempfile.TemporaryDirectory(prefix="burstlab-start-", dir="/var/tmp") as base:
        Path(base).chmod(0o755)
        lab = f"{base}/lab"
        burstlab("lab", "up", "--nodes", str(max(NODES)), "--directory", lab)
        try:
            load, told = os.getloadavg()[0], cells_in_a_job(Path(lab), runs)
        finally:
            burstlab("lab", "down", "--directory", lab)
    print(
        f"conditions: {runs} runs on {max(NODES)} nodes of a lab, launched by srun; "
        f"{os.cpu_count()} cores for all of them, load {load:.1f} to {os.getloadavg()[0]:.1f}"
    )
    for storage in STORAGES:
        for span in SPANS:
            for nodes in NODES:
                tell(f"{storage} {span} n={nodes}", told[storage, nodes, span])


def cells_in_a_job(lab: Path, runs: int) -> dict[tuple[str, int, str], list[float]]:
    """Seconds by storage, nodes and span, the storages in turn."""
    shared = "/pfs/work"
    told: dict[tuple[str, int, str], list[float]] = {}
    points = [(s, n, r) for r in range(runs) for n in NODES for s in STORAGES]
    path = shlex.quote(f"PYTHONPATH={ROOT / 'src'}")
    lines = [
        f"env {path} {sys.executable} -m burstlab run --storage {storage} --nodes {nodes} "
        f"--launch {'srun' if nodes > 1 else 'local'} --local-dir /local --pfs {shared} "
        f"--cell-dir {shared}/{storage}-{nodes}-{run} -- true || exit 1"
        for storage, nodes, run in points
    ]
    script = lab / "cells.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    submit = ["sbatch", "--wait", "-N", str(max(NODES)), "-o", f"{shared}/said", str(script)]
    try:
        burstlab("lab", "exec", "--directory", str(lab), "--user", "lab", "head", "--", *submit)
    except subprocess.CalledProcessError:
        raise SystemExit((lab / "pfs/said").read_text()) from None
    for storage, nodes, run in points:
        record = json.loads((lab / f"pfs/{storage}-{nodes}-{run}/record.json").read_text())
        elapsed_s = {span["name"]: span["elapsed_s"] for span in record["spans"]}
        for span in SPANS:
            told.setdefault((storage, nodes, span), []).append(elapsed_s[span])
    return told


def burstlab(*words: str) -> None:
    """A burstlab command, which must succeed."""
    path = f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"
    subprocess.run(
        [sys.executable, "-m", "burstlab", *words], check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def one_run(local_dir: Path, files: int) -> dict[str, float]:
    """Seconds of each step, in the order in which they are told."""
    lease = Lease.create(label="benchmark")
    directory = lease.directory(local_dir / f"burstlab-{lease.id}")
    nodes = TimedNodes(directory, lease)
    pfs = MountedPfs(local_dir, lease.id, lease)
    context = Context(lease.id, directory, nodes, lease, pfs, frozenset(), 0)
    storage = GfarmStorage(GfarmStorage.Options(), context)
    try:
        elapsed_s = {"start": seconds(storage.start)}
        elapsed_s |= {f"  {step}": nodes.elapsed_s[step] for step in STEPS}
        for number in range(files):
            (storage.mount / f"file-{number}").write_bytes(bytes(4096))
        elapsed_s |= {"verify": seconds(storage.verify), "stop": seconds(storage.stop)}
    finally:
        began = time.perf_counter()
        left = lease.clean()
        elapsed_s |= {"lease clean": time.perf_counter() - began}
    if left:
        raise SystemExit("; ".join(left))
    lease.release()
    return elapsed_s


def seconds(step: Callable[[], object]) -> float:
    """Wall time of a step. Raises SystemExit when it complains."""
    began = time.perf_counter()
    if complaints := step():
        raise SystemExit(str(complaints))
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
