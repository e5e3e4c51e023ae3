"""How a data set comes into a Gfarm of several hosts.

Through the mounts, every host copies an equal part, which then lies on its own disk; or one host
runs gfpcopy(1), which spreads the files. Both are compared with the manifest.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from burstlab.dataset.manifest import Entry, Manifest, checksum, read_manifest
from burstlab.errors import StagingError, StorageError
from burstlab.nodes import Node
from burstlab.staging import stage_in
from burstlab.storage.gfarm.node import instance_on
from burstlab.storage.gfarm.programs import ask

MOUNTS, GFPCOPY = "mounts", "gfpcopy"
PROCESSES_PER_HOST = 16  # of gfpcopy; it takes no more for a host than that has processors
LIMIT_S = 24 * 3600.0
IN_FLIGHT = 16


def part_of(manifest: Manifest, number: int, of: int) -> list[Entry]:
    """Every host's part: as many files each, and as many bytes, but for one large file."""
    by_size = sorted(manifest.files, key=lambda entry: entry.size, reverse=True)
    return by_size[number::of]


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


def copy_part(node: Node, manifest: str, source: str, target: str, hosts: Sequence[str]) -> int:
    """Node action: copy this host's part through its mount; returns bytes."""
    whole = read_manifest(Path(manifest))
    part = whole.part(part_of(whole, hosts.index(node.host.name), len(hosts)))
    return stage_in(part, Path(source), Path(target))


def run_gfpcopy(
    node: Node, head: str, server: str, port: int, source: str, target: str, hosts: int
) -> None:
    """Node action: one gfpcopy on the host ``head``; ``target`` is a path in Gfarm."""
    if node.host.name != head:
        return
    # -B: a host busy with the copying itself is no reason to pass it over (or to fail)
    options = ["-B", "-q", "-j", str(PROCESSES_PER_HOST * hosts)]
    command = ["gfpcopy", *options, f"file://{source}", f"gfarm://{target}"]
    try:
        ask(node, command, instance_on(node, server, port), LIMIT_S)
    except StorageError as error:
        raise StagingError(str(error)) from error


def compare_part(node: Node, manifest: str, target: str, hosts: Sequence[str]) -> None:
    """Node action: read this host's part back. Raises StagingError naming the first file that is
    not what the manifest says."""
    whole = read_manifest(Path(manifest))
    entries = part_of(whole, hosts.index(node.host.name), len(hosts))
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        try:
            for fault in pool.map(lambda entry: _fault(Path(target, entry.path), entry), entries):
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
