"""Whether every file is where Gfarm says, whole: by its logs at once, by its disks at the end.

Local writers get the spool's file from gfsd and write past it. When the gfsd worker that serves
them dies, their write, fsync and close still succeed, and the file is then empty to everybody
(seen with 2.7.20; gfwhere goes on naming its host). Two witnesses are left: what gfmd and
gfarm2fs log, and a spool file whose size is not the one in the metadata.
"""

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from burstlab.errors import StorageError
from burstlab.mounts import mount_of
from burstlab.nodes import Node
from burstlab.process import Identity
from burstlab.storage.gfarm.network import listens
from burstlab.storage.gfarm.node import WATCH, instance_on, is_mounted
from burstlab.storage.gfarm.programs import ask, said_by

DAEMONS = "daemons.json"
ANSWER_S = 60.0  # a mount under load may be slow, but not this slow

_LOST = {  # log -> a line that says data were lost
    "gfarm2fs": re.compile(r"<RELEASE:\w+>\[.*?\](?P<what>.*)"),
    "gfmd": re.compile(r"(?P<what>gfsd on \S+ exited without closing write-opened file)"),
}
# gfls -li: inode, mode, links, user, group, size, date, name; a name may hold any byte but /
_LISTED = re.compile(rb" *(\d+) -\S+ +\d+ \S+ +\S+ +(\d+) \w+ +\d+ +[\d:]+ (.+)")
_REGULAR = re.compile(rb" *\d+ -")
_DIRECTORY = re.compile(rb"(/.*):")
_GENERATION_DIGITS = 16  # of 32 in "data/%08X/%02X/%02X/%02X/%02X%08X%08X" (gfsd.c)


class File(NamedTuple):
    """A regular file by Gfarm's metadata."""

    path: str
    inode: int
    size_bytes: int


class Replica(NamedTuple):
    """A file of a spool."""

    inode: int
    generation: int
    size_bytes: int


def complaints(node: Node, mount: str) -> list[str]:
    """Node action: what this host's daemons say of lost data, and whether its mount answers.

    Does not touch the mount.
    """
    directory = node.host.local_dir / "gfarm"
    found = [what for program in _LOST for what in losses(program, directory)]
    found += [f"{name} died" for name in gone(directory)]
    if full := _full(directory / "spool"):
        found.append(full)
    if not is_mounted(mount):
        found.append(f"{mount} is no longer mounted")
    silent_s = time.time() - (directory / "beat").stat().st_mtime
    if silent_s > ANSWER_S and WATCH in node.lease.children:
        found.append(f"{mount} has not answered for {silent_s:.0f} s")
    return found


def keep(directory: Path, daemons: Mapping[str, Identity]) -> None:
    """Note who must not die, where the lease's holder is not the parent and would not be told."""
    (directory / DAEMONS).write_text(json.dumps(daemons))


def gone(directory: Path) -> list[str]:
    """Those noted by ``keep`` that no longer run."""
    try:
        noted = json.loads((directory / DAEMONS).read_text())
    except FileNotFoundError:
        return []
    return [name for name, identity in noted.items() if not Identity(*identity).alive()]


def _full(spool: Path) -> str:
    """Whoever writes to a disk without a free block loses it; the log may tell it later."""
    if os.statvfs(spool).f_bavail:
        return ""
    disk = mount_of(spool)
    return f"no space left on the disk of its spool, {disk.path} ({disk.source}, {disk.type})"


def losses(program: str, directory: Path) -> list[str]:
    """What a daemon's log says of files that were written in vain."""
    searched = (_LOST[program].search(line) for line in said_by(program, directory))
    found = [match["what"] for match in searched if match]
    return [f"data lost: {what}" for what in dict.fromkeys(found)]


def listing(node: Node, head: str, server: str, port: int) -> list[File] | None:
    """Node action: every regular file there is by gfmd's account, asked on the host ``head``.

    Raises StorageError when gfmd is not there: its clients would try for long to reach it.
    """
    if node.host.name != head:
        return None
    if not listens(port):
        raise StorageError(f"gfmd no longer accepts connections to port {port}")
    return parse_listing(ask(node, ["gfls", "-liR", "/"], instance_on(node, server, port)))


def replicas(node: Node) -> list[Replica]:
    """Node action: the newest generation of every file in this host's spool."""
    data = str(node.host.local_dir / "gfarm" / "spool" / "data")
    newest: dict[int, Replica] = {}
    for where, _, names in os.walk(data):
        above = where.removeprefix(data).replace("/", "")
        for name in names:
            try:
                size_bytes = Path(where, name).stat().st_size
            except FileNotFoundError:
                continue  # what nobody needs goes at any time
            digits = above + name
            inode = int(digits[:-_GENERATION_DIGITS], 16)
            generation = int(digits[-_GENERATION_DIGITS:], 16)
            if inode not in newest or newest[inode].generation < generation:
                newest[inode] = Replica(inode, generation, size_bytes)
    return list(newest.values())


def parse_listing(output: bytes) -> list[File]:
    """Regular files in the output of ``gfls -liR /``. Raises StorageError for a strange line."""
    files, directory = [], b""
    for line in output.split(b"\n"):
        if found := _LISTED.fullmatch(line):
            inode, size, name = found.groups()
            files.append(File(os.fsdecode(directory + b"/" + name), int(inode), int(size)))
        elif _REGULAR.match(line):
            raise StorageError(f"gfls lists a file in a way that is not understood: {line!r}")
        elif found := _DIRECTORY.fullmatch(line):
            directory = found[1]
    return files


def differences(files: Iterable[File], replicas: Iterable[Replica]) -> list[str]:
    """One line for each file that no disk holds in the size it has by its metadata.

    Only the newest generation counts; what a spool holds besides is about to be removed.
    """
    newest: dict[int, list[Replica]] = {}
    for replica in replicas:
        others = newest.setdefault(replica.inode, [replica])
        if replica.generation > others[0].generation:
            others[:] = [replica]
        elif replica is not others[0] and replica.generation == others[0].generation:
            others.append(replica)
    found = []
    for file in files:
        sizes = {replica.size_bytes for replica in newest.get(file.inode, [])}
        if not sizes:
            found.append(f"{file.path}: no host has its data")
        elif sizes != {file.size_bytes}:
            disk = ", ".join(str(size) for size in sorted(sizes))
            found.append(f"{file.path}: {file.size_bytes} bytes by metadata, {disk} on disk")
    return found
