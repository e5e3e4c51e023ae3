"""How long one host takes to have a Gfarm, seen to work, and to be rid of it.

python benchmarks/gfarm_start.py [--runs 20] [--files 1000] [--local-dir DIR]

`start` ends when a file was written through the mount, found on this host's disk and read back;
its steps are indented below it. `verify` compares the metadata of all files with the disk. The
first run, which finds the programs' files cold or warm as they are, counts like the others.
"""

import argparse
import os
import platform
import statistics
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
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--files", type=int, default=1000, help="written before verify")
    parser.add_argument("--local-dir", default=tempfile.gettempdir(), type=Path)
    arguments = parser.parse_args()
    runs = [one_run(arguments.local_dir, arguments.files) for _ in range(arguments.runs)]
    print(
        f"conditions: {arguments.runs} runs of 1 host, {arguments.files} files of 4 KiB on "
        f"{mount_of(arguments.local_dir).type}; {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f}, Linux {platform.release()}, user {os.getuid()}"
    )
    for step in runs[0]:
        values = [1e3 * run[step] for run in runs]
        spread = f"({min(values):.1f} to {max(values):.1f})"
        print(f"{step:24} {statistics.median(values):8.1f} ms   {spread}")


def one_run(local_dir: Path, files: int) -> dict[str, float]:
    """Seconds of each step, in the order in which they are told."""
    lease = Lease.create(label="benchmark")
    directory = lease.directory(local_dir / f"burstlab-{lease.id}")
    nodes = TimedNodes(directory, lease)
    pfs = MountedPfs(local_dir, lease.id, lease)
    context = Context(lease.id, directory, nodes, lease, pfs, frozenset(), True, 0)
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
