"""Copy a data set to one or many hosts, whole or not at all.

The target is a directory of the same path on every host; virtual nodes each get one below it.
What is there already with its size and checksum is not copied again. As the workload of a cell it
reports its times for the record.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from burstlab.allocation import Allocation, allocate
from burstlab.errors import BurstlabError, ConfigurationError
from burstlab.launch import LAUNCHERS
from burstlab.request import STAGING_METHODS

if TYPE_CHECKING:
    from burstlab.dataset.manifest import Manifest
    from burstlab.nodes import Nodes
    from burstlab.staging.hosts import Staged, Watch

HOW = {
    "copy": "each host copies everything",
    "tree": "one host reads the source and sends it on along a tree of hosts",
    "shard": "each host copies its part",
    "archive": "one tar file is made once, and unpacked on each host",
    "paper": "GNU parallel runs 8 cp on each host (Serizawa, table 3)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The data set, the target, the method, the hosts."""
    add = parser.add_argument
    add("manifest", type=Path, help="of the data set (burstlab dataset make)")
    add("target", type=Path, help="directory; made if it is not there")
    methods = "; ".join(f"{name}: {text}" for name, text in HOW.items())
    add("--method", choices=STAGING_METHODS, default="copy", help=f"{methods} (default: copy)")
    add("--source", type=Path, metavar="DIR", help="default: where the manifest says")
    add("--nodes", type=int, help="number of hosts (default: all there are)")
    add("--hosts", default="", help="hosts, such as node[01-04] (default: the scheduler's)")
    add("--virtual", action="store_true", help="virtual nodes of this machine")
    add("--launch", choices=("auto", *LAUNCHERS), default="auto", help="auto: srun or ssh")
    add("--launch-option", action="append", default=[], metavar="WORD", help="for the launcher")


def main(arguments: argparse.Namespace) -> int:
    """Stage and tell. Raises BurstlabError; a stop signal ends it with 128 + its number."""
    from burstlab.dataset.manifest import absolute, read_manifest
    from burstlab.staging.hosts import Staging
    from burstlab.stopping import Stopped, StopSignals

    manifest = read_manifest(absolute(arguments.manifest))
    source = absolute(arguments.source or manifest.root)
    if arguments.nodes is not None and arguments.nodes < 1:
        raise ConfigurationError(f"--nodes {arguments.nodes}: a whole number from 1 is wanted")
    allocation = allocate(arguments.nodes, arguments.hosts, arguments.virtual)
    try:
        with (
            StopSignals(0).active(),
            _hosts(allocation, arguments.launch, arguments.launch_option) as nodes,
            _progress(manifest) as watch,
        ):
            target = absolute(arguments.target)
            apart = allocation.virtual
            targets = {h.name: target / h.name if apart else target for h in nodes.hosts}
            staged = Staging(nodes, manifest, source, targets, watch).run(arguments.method)
    except Stopped as stopped:
        print(f"burstlab stage: {stopped}; stage again to go on", file=sys.stderr)
        return stopped.status
    print(summary(staged, target))
    if cell_dir := os.environ.get("BURSTLAB_CELL_DIR"):
        report(staged, Path(cell_dir))
    return 0


def summary(staged: "Staged", target: Path) -> str:
    """Counts, rates, and the seconds of each phase."""
    seconds = max(staged.elapsed_s, 1e-9)
    share = staged.files_here / max(staged.files, 1)
    each = "" if staged.hosts == 1 else f" on {staged.hosts} hosts"
    there = f" ({staged.present} were there)" if staged.present else ""
    lines = [
        f"{target}: {staged.arrived} files of {staged.files}, {staged.size_bytes / 1e6:.1f} MB"
        f"{each}{there}, in {seconds:.2f} s: {staged.files_here / seconds:.0f} files/s, "
        f"{share * staged.size_bytes / seconds / 1e6:.1f} MB/s" + (" each" if each else "")
    ]
    lines += [f"  {phase:9} {took:8.2f} s" for phase, took in staged.phases.items()]
    return "\n".join(lines)


def report(staged: "Staged", cell_dir: Path) -> None:
    """Metrics and facts for the record of the cell whose workload this is."""
    seconds = {"staging_time": staged.elapsed_s}
    seconds |= {f"staging_{phase}_time": took for phase, took in staged.phases.items()}
    metrics = [
        {"name": name, "value": value, "unit": "s", "better": "lower"}
        for name, value in seconds.items()
    ]
    rate = staged.files_here / max(staged.elapsed_s, 1e-9)
    metrics.append({"name": "staging_rate", "value": rate, "unit": "files/s", "better": "higher"})
    (cell_dir / "metrics.json").write_text(json.dumps(metrics))
    facts = {"method": staged.method, "files": str(staged.files), "present": str(staged.present)}
    (cell_dir / "facts.json").write_text(json.dumps(facts))


@contextmanager
def _hosts(allocation: Allocation, launch: str, launch_options: list[str]) -> Iterator["Nodes"]:
    """All hosts, under a lease: whatever is started there is ended with it."""
    from burstlab import lease
    from burstlab.hosting import way_to
    from burstlab.lease import Lease
    from burstlab.nodes import VirtualNodes

    lease.reap()
    names = allocation.hosts
    own = Lease.create(command=["stage"])
    base = Path(tempfile.gettempdir(), f"burstlab-{own.id}")
    try:
        scratch = own.directory(base)
        if (way := way_to(allocation)) == "local":
            nodes: Nodes = VirtualNodes(scratch, len(names), own)
        else:
            from burstlab.agents import AgentNodes

            way = launch if launch != "auto" else way
            nodes = AgentNodes(names, Path(f"{base}.node"), way, launch_options, own, scratch)
        try:
            yield nodes
        finally:
            nodes.close()
    finally:
        if left := own.clean():
            raise BurstlabError(f"left behind: {'; '.join(left)} (burstlab reap)")
        own.release()


@contextmanager
def _progress(manifest: "Manifest") -> Iterator["Watch"]:
    """Files/s, MB/s and the time left, where somebody watches."""
    if not sys.stderr.isatty():
        yield lambda phase, files, size_bytes: None
        return
    from rich.console import Console

    from burstlab.staging.watching import Watching

    with Watching(manifest.size_bytes, Console(stderr=True)) as watching:
        yield watching.tell
