"""What each host does to get its data: one function for each method, called on all hosts at once.
A host that has no target does nothing.

Sources: the paper's way and its times are section 4.3 and table 3 of Serizawa and Tatebe.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import burstio

from burstlab.dataset.manifest import Manifest, read_manifest
from burstlab.errors import StagingError
from burstlab.nodes import Node
from burstlab.staging.copying import PARTIAL, begin, complete, rows
from burstlab.staging.running import Copying, Report, Steps, begun

PAPER_COPIES = 8  # parallel copies on each node
LAST_LINES = 3

_listening: dict[str, burstio.Listening] = {}


def copy_here(node: Node, manifest: str, source: str, targets: Mapping[str, str]) -> None:
    """Node action: begin to copy everything from the source."""
    if node.host.name not in targets:
        return
    _copy(node, read_manifest(Path(manifest)), source, targets, slice(None))


def shard_here(
    node: Node, manifest: str, source: str, targets: Mapping[str, str], hosts: Sequence[str]
) -> None:
    """Node action: begin to copy host k's part of n hosts: files k, k + n, k + 2n, ..."""
    if node.host.name not in targets:
        return
    part = slice(hosts.index(node.host.name), None, len(hosts))
    _copy(node, read_manifest(Path(manifest)), source, targets, part)


def listen_here(
    node: Node, manifest: str, targets: Mapping[str, str], hosts: Sequence[str], token: str
) -> int:
    """Node action: listen for the parent in the tree; returns the port, 0 on the first host."""
    if node.host.name not in targets or node.host.name == hosts[0]:
        return 0
    known = read_manifest(Path(manifest))
    target = Path(targets[node.host.name])
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        listening = burstio.Listening(target, rows(known), bytes.fromhex(token))
    except burstio.StagingFault as fault:
        raise StagingError(str(fault)) from fault
    _listening[node.host.name] = listening
    return listening.port


def broadcast_here(
    node: Node,
    manifest: str,
    source: str,
    targets: Mapping[str, str],
    hosts: Sequence[str],
    addresses: Mapping[str, str],
    token: str,
) -> None:
    """Node action: begin to send what comes, to the first host from the source, down the tree.

    ``addresses``: where each host listens. Children are connected to while they only listen.
    """
    name = node.host.name
    if name not in targets:
        return
    children = [addresses[child] for child in children_of(hosts, name)]
    try:
        if name == hosts[0]:
            files = rows(read_manifest(Path(manifest)))
            secret = bytes.fromhex(token)
            target = Path(targets[name])
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            copy = burstio.Copy(source, target, files, children=children, token=secret)
        else:
            copy = _listening.pop(name).begin(children)
    except burstio.StagingFault as fault:
        raise StagingError(str(fault)) from fault
    begun(node, Copying(copy, "broadcast"))


def unpack_here(node: Node, manifest: str, archive: str, targets: Mapping[str, str]) -> None:
    """Node action: begin to unpack an archive of the data set with tar(1)."""
    if node.host.name not in targets:
        return
    known, target = read_manifest(Path(manifest)), Path(targets[node.host.name])
    partial = _fresh(target)
    command = ["tar", "--extract", "--no-same-owner", f"--file={archive}", f"--directory={partial}"]
    unpack = ("unpack", lambda _: _program(node, command, b""))
    begun(node, Steps([unpack, ("verify", lambda tell: _verify(known, partial, target, tell))]))


def paper_here(node: Node, manifest: str, source: str, targets: Mapping[str, str]) -> None:
    """Node action: begin to copy as the paper did: GNU parallel runs 8 `cp` at once, each for a
    directory. Counting and comparing the files after it is ours, and a phase of its own."""
    if node.host.name not in targets:
        return
    known, target = read_manifest(Path(manifest)), Path(targets[node.host.name])
    partial = _fresh(target)
    tops = dict.fromkeys(entry.path.split("/")[0] for entry in known.files)
    names = b"".join(os.fsencode(str(Path(source, top))) + b"\0" for top in tops)
    command = ["parallel", "--will-cite", "--null", "--halt", "now,fail=1"]
    command += ["--jobs", str(PAPER_COPIES), "cp", "-r", "--", "{}", f"{partial}/"]
    copy = ("copy", lambda _: _program(node, command, names))
    begun(node, Steps([copy, ("verify", lambda tell: _verify(known, partial, target, tell))]))


def children_of(hosts: Sequence[str], name: str) -> Sequence[str]:
    """Whom a host sends to: a binary tree, whose first host reads the source."""
    at = hosts.index(name)
    return hosts[2 * at + 1 : 2 * at + 3]


def _copy(
    node: Node, manifest: Manifest, source: str, targets: Mapping[str, str], part: slice
) -> None:
    copy = begin(Path(source), Path(targets[node.host.name]), rows(manifest, part))
    begun(node, Copying(copy, "copy"))


def _fresh(target: Path) -> Path:
    """A directory of its own, which gets the target's name when all of it is whole."""
    if target.exists() and any(target.iterdir()):
        raise StagingError(
            f"{target}: is not empty; this method does not go on with a staging (copy does)"
        )
    partial = target.with_name(f".{target.name}{PARTIAL}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    return partial


def _program(node: Node, command: Sequence[str], given: bytes) -> None:
    """Run a program to its end. Raises StagingError with its last words."""
    log = node.host.local_dir / "staging.log"
    with log.open("wb") as output:
        child = node.lease.spawn(
            command, f"staging {node.host.name}", output, {**os.environ, "LC_ALL": "C"},
            stdin=subprocess.PIPE,
        )  # fmt: skip
        child.communicate(given)
    del node.lease.children[f"staging {node.host.name}"]
    if child.returncode != 0:
        said = log.read_text(errors="replace").strip().splitlines()[-LAST_LINES:]
        raise StagingError(f"{command[0]} ended with status {child.returncode}: {'; '.join(said)}")


def _verify(manifest: Manifest, partial: Path, target: Path, tell: Report) -> dict[str, Any]:
    """Compare with the manifest, make durable, and give it its name."""
    done = complete(begin(partial, partial, rows(manifest)), "verify", tell)
    if target.exists():
        target.rmdir()
    partial.rename(target)
    return {"files": done.files, "present": 0, "size_bytes": done.size_bytes}
