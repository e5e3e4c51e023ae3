"""What one host does for a BeeOND session: node actions before its start and after its end."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from burstlab.doctor.environments import find_command
from burstlab.errors import StorageError
from burstlab.lease import Lease
from burstlab.mounts import mount_of, mounted_at
from burstlab.nodes import Node
from burstlab.process import Identity
from burstlab.storage.beeond.processes import as_root, end, pid_in, processes
from burstlab.storage.beeond.session import MOUNT_SOURCE, Session, generation
from burstlab.storage.probing import ask, following, leave_probe, synchronize, take_probe

CLEAR = "burstlab.storage.beeond.node:clear_lease"
SKEW_S = 1.0  # between the clocks of two hosts
LOOK_S = 3.0  # how long a host is looked at until nothing comes back
_CONFIGURATIONS = {
    7: [f"beegfs-{service}.conf" for service in ("mgmtd", "meta", "storage", "helperd", "client")],
    8: [],  # beeond 8 gives its daemons all they need
}
_PID_FILE = re.compile(r"/(?:var/)?run/beegfs-[a-z]+-\d{8}-\d{6}\.pid")


def unfit(node: Node, conf: str, mount: str) -> str:
    """Node action: why this host can't be part of a session, or nothing."""
    if absent := [name for name in ("fuser", "umount", "stat") if not find_command(name)]:
        return f"{absent[0]} is missing: beeond calls it"
    missing = [name for name in _CONFIGURATIONS[generation()] if not _is_there(Path(conf, name))]
    if conf and missing:
        return f"{conf} has no {missing[0]}: beeond -f wants it on every host"
    if there := mounted_at(mount):
        return f"{mount} has a mount already ({there.type}): give another -o mount"
    return ""


def prepare(node: Node, session: dict[str, Any]) -> None:
    """Node action: the session's directories, on the lease; raises StorageError or OSError."""
    own = Session.of_json(session)
    node.lease.directory(own.data)
    node.lease.directory(own.logs)
    if Path(own.status).exists():
        raise StorageError(f"{own.status} is there already: another session's status file")
    node.lease.undo(CLEAR, session=session)
    if not Path(own.mount).exists():
        node.lease.directory(own.mount)
    elif any(Path(own.mount).iterdir()):
        raise StorageError(f"{own.mount} is not empty: nothing is mounted over what is there")


def meet(node: Node, session: dict[str, Any]) -> dict[str, Any]:
    """Node action: the mount and the daemons of this host, seen to work; what they are.

    Leaves a probe for the next host to read.
    """
    own = Session.of_json(session)
    mount = mounted_at(own.mount)
    if mount is None or mount.source != MOUNT_SOURCE:
        found = f"{mount.type} from {mount.source}" if mount else "no mount"
        raise StorageError(f"beeond start succeeded, and {own.mount} has {found}")
    running = {one.pid: one for one in processes(own)}
    watched = {}
    for service, pid_file in _services(own):
        if (pid := pid_in(pid_file)) not in running:
            raise StorageError(f"beeond start succeeded, and {service} does not run ({pid_file})")
        watched[service] = list(running[pid])
    leave_probe(own.mount, node.host.name)
    disk = mount_of(own.data)
    facts = {"type": mount.type, "mount_options": mount.options}
    return {"daemons": watched, "facts": {**facts, "data_type": disk.type, "data": disk.source}}


def read_next(node: Node, session: dict[str, Any], hosts: Sequence[str]) -> None:
    """Node action: read what the next host wrote, and remove it."""
    take_probe(Session.of_json(session).mount, following(hosts, node.host.name))


def listing(node: Node, head: str, session: dict[str, Any]) -> list[str]:
    """Node action: the names in the mount, as the host ``head`` sees them."""
    if node.host.name != head:
        return []
    return ask(["ls", "-A", "--", Session.of_json(session).mount]).split("\n")[:-1]


def complaints(
    node: Node, session: dict[str, Any], daemons: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Node action: what is wrong on this host; does not touch the mount."""
    own = Session.of_json(session)
    found = [
        f"{service} died" for service, who in daemons[node.host.name].items()
        if not Identity(*who).alive()
    ]  # fmt: skip
    mount = mounted_at(own.mount)
    if mount is None or mount.source != MOUNT_SOURCE:
        found.append(f"{own.mount} is no longer mounted")
    return found


def write_back(node: Node, session: dict[str, Any]) -> None:
    """Node action: what was written here, and what lies here, is on the disk (syncfs(2))."""
    own = Session.of_json(session)
    for directory in (own.mount, own.data):
        synchronize(directory)


def clear(node: Node, session: dict[str, Any]) -> list[str]:
    """Node action: end and remove what ``beeond stop`` left; what is there all the same."""
    left = clear_lease(node.lease, session)
    if not left:
        node.lease.undone(CLEAR)
    return left


def clear_lease(lease: Lease, session: dict[str, Any]) -> list[str]:
    """What ``clear`` does, where only the lease is left of a cell.

    A start that is being ended on another host may still do its last step here: look again.
    """
    own, deadline = Session.of_json(session), time.monotonic() + LOOK_S
    while True:
        said = _clear(own)
        if not (left := remains(own)) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return [f"{what} ({said})" if said else what for what in left]


def _clear(own: Session) -> str:
    running = processes(own)
    told = [*running.values(), *(pid_file for _, pid_file in _services(own))]
    pid_files = {file for words in told for file in _PID_FILE.findall(words)}
    end(running, own.prefix)
    said = _unmount(own)
    if not mounted_at(own.mount):
        gone = [*pid_files, *_pdsh_marks(own), own.status, own.data, own.logs]
        said = as_root(own.prefix, ["rm", "-rf", "--one-file-system", "--", *gone])
    return said


def remains(own: Session) -> list[str]:
    """What is there of a session on this host."""
    found = [f"process {one.pid} of BeeOND" for one in processes(own)]
    if (mount := mounted_at(own.mount)) and mount.source == MOUNT_SOURCE:
        found.append(f"mount {own.mount}")
    there = [path for path in own.paths if Path(path).exists()]
    return found + [f"{path} of BeeOND" for path in [*there, *_pdsh_marks(own)]]


def _pdsh_marks(own: Session) -> list[str]:
    """What `beeond -P` leaves where a command of its failed: root's, empty, since the start."""
    found = []
    for path in Path("/tmp").glob("beegfs.pdsh_fail.*") if own.pdsh else ():
        with suppress(FileNotFoundError):
            stat = path.lstat()
            if (stat.st_uid, stat.st_size) == (0, 0) and stat.st_mtime >= own.begun_s - SKEW_S:
                found.append(str(path))
    return found


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError:
        return True  # root's alone: beeond will tell


def _services(own: Session) -> list[tuple[str, str]]:
    """Service and pid file of each daemon in this host's status file.

    A line is ``host,service,data path,log file,pid file``; ``-`` stands for what is not there.
    """
    try:
        lines = Path(own.status).read_text(errors="replace").splitlines()
    except OSError:
        return []
    fields = [line.split(",") for line in lines]
    return [(line[1], line[4]) for line in fields if len(line) == 5 and line[4] != "-"]


def _unmount(own: Session) -> str:
    said = ""
    while (mount := mounted_at(own.mount)) and mount.source == MOUNT_SOURCE and not said:
        said = as_root(own.prefix, ["umount", "-l", "--", own.mount])
    return said
