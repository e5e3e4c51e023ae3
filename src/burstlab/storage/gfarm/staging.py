"""How a data set comes into a Gfarm of several hosts.

Through the mounts, every host copies an equal part, which then lies on its own disk; or one host
runs gfpcopy(1), which spreads the files. Then every host reads a part back.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from burstlab.dataset.manifest import IN_FLIGHT, Entry, Manifest, checksum, read_manifest
from burstlab.errors import NodeError, StagingError
from burstlab.nodes import Node, Nodes
from burstlab.staging.hosts import LOOK_S, RUNNING, Staging
from burstlab.staging.running import Report, Steps, begun
from burstlab.storage.gfarm.node import instance_on
from burstlab.storage.gfarm.programs import ask

_HERE = "burstlab.storage.gfarm.staging"
PROCESSES_PER_HOST = 16  # of gfpcopy; it takes no more for a host than that has processors
LIMIT_S = 24 * 3600.0

Phases = dict[str, float]  # seconds of the slowest host in each


def through_mounts(nodes: Nodes, manifest: Manifest, source: Path, target: Path) -> Phases:
    """Every host copies its part. Raises StagingError or NodeError naming host and file."""
    targets = {host.name: target for host in nodes.hosts}
    staged = Staging(nodes, manifest, source, targets).run("shard")
    return {**staged.phases, **_compare(nodes, manifest, target)}


def by_gfpcopy(
    nodes: Nodes,
    manifest: Manifest,
    source: Path,
    target: Path,
    place: str,
    served: Mapping[str, Any],
) -> Phases:
    """One gfpcopy on the first host, to the path ``place`` of Gfarm. Raises as the other does."""
    if why := why_not_gfpcopy(manifest, source):
        raise StagingError(f"stage_in=gfpcopy: {why}; take stage_in=mounts")
    names = [host.name for host in nodes.hosts]
    where = {"source": str(source), "place": place, "hosts": names, **served}
    phases = _await(nodes, f"{_HERE}:begin_gfpcopy", **where)
    return {**phases, **_compare(nodes, manifest, target)}


def why_not_gfpcopy(manifest: Manifest, source: Path) -> str:
    """gfpcopy takes directories as they are: what it would do wrong, or nothing."""
    known = {entry.path for entry in manifest.files}
    for where, _, names in os.walk(source):
        for name in names:
            path = Path(where, name)
            if str(path.relative_to(source)) not in known:
                return f"{path} is not of the data set, and gfpcopy copies whole directories"
            if path.is_symlink():
                return f"{path} is a symbolic link, and gfpcopy copies it as one"
    return ""


def begin_gfpcopy(
    node: Node, hosts: Sequence[str], server: str, port: int, source: str, place: str
) -> None:
    """Node action: one gfpcopy, on the first host."""
    # -B: a host busy with the copying itself is no reason to pass it over (or to fail)
    options = ["-B", "-q", "-j", str(PROCESSES_PER_HOST * len(hosts))]
    command = ["gfpcopy", *options, f"file://{source}", f"gfarm://{place}"]

    def copy(_: Report) -> None:
        ask(node, command, instance_on(node, server, port), LIMIT_S)

    begun(node, Steps([("gfpcopy", copy)] if node.host.name == hosts[0] else []))


def begin_compare(node: Node, manifest: str, target: str, hosts: Sequence[str]) -> None:
    """Node action: read back the part that this host would copy."""
    entries = read_manifest(Path(manifest)).files[hosts.index(node.host.name) :: len(hosts)]
    begun(node, Steps([("compare", lambda _: _require_whole(Path(target), entries))]))


def _compare(nodes: Nodes, manifest: Manifest, target: Path) -> Phases:
    names = [host.name for host in nodes.hosts]
    where = {"manifest": str(manifest.path), "target": str(target), "hosts": names}
    return _await(nodes, f"{_HERE}:begin_compare", **where)


def _await(nodes: Nodes, action: str, **arguments: Any) -> Phases:
    """Begin something on every host and wait for its end on all. Raises StagingError."""
    try:
        nodes.call(action, **arguments)
        while True:
            states = nodes.call(f"{RUNNING}:look_here", wait_s=LOOK_S)
            for host, state in states.items():
                if "error" in state:
                    raise StagingError(f"{host}: {state['error']}")
            if all(state["ended"] for state in states.values()):
                break
    finally:
        with suppress(NodeError):  # the host that is lost, which is told with the first error
            nodes.call(f"{RUNNING}:end_here")
    phases: Phases = {}
    for state in states.values():
        for phase, elapsed_s in state["phases"].items():
            phases[phase] = max(phases.get(phase, 0.0), elapsed_s)
    return phases


def _require_whole(target: Path, entries: Sequence[Entry]) -> None:
    """Raises StagingError naming the first file that is not what the manifest says."""
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        try:
            for fault in pool.map(lambda entry: _fault(target / entry.path, entry), entries):
                if fault:
                    raise StagingError(fault)
        finally:
            pool.shutdown(cancel_futures=True)


def _fault(path: Path, entry: Entry) -> str:
    try:
        if (size := path.stat().st_size) != entry.size:
            return f"{path}: {size} bytes arrived, {entry.size} expected"
        if checksum(path) != entry.checksum:
            return f"{path}: the copy has another checksum"
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""
