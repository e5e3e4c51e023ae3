"""`provided`: a burst buffer that the scheduler has mounted for the job.

BeeOND by `-l USE_BEEOND=1` (/beeond, $SGE_BEEONDDIR), by `--constraint=beeond` or `--beeond`
($BEEOND, /mnt/odfs/$SLURM_JOB_ID/stripe_default), DataWarp's $DW_JOB_STRIPED, and their like. It
is looked at on every host, and only a directory of the cell's own is made in it.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.errors import StorageError
from burstlab.mounts import Mount, mount_of
from burstlab.nodes import Node, VirtualNodes
from burstlab.storage.interface import Context, Storage
from burstlab.storage.probing import ask, following, leave_probe, synchronize, take_probe
from burstlab.storage.stripes import stripes

_HERE = "burstlab.storage.provided"
MAGIC = {  # what statfs(2) tells as f_type, in hexadecimal, of a mount of that type
    "beegfs": "19830326",
    "lustre": "bd00bd0",
    "gpfs": "47504653",
    "nfs": "6969",
    "xfs": "58465342",
    "ext4": "ef53",
    "tmpfs": "1021994",
}


@dataclass(frozen=True)
class Options:
    """What a site tells of the burst buffer its scheduler gives."""

    path: str = ""  # where it is; $NAME stands for a variable of the job
    type: str = ""  # what must be mounted there: beegfs, lustre, dvs ...
    shared: bool = True  # one name space for all hosts


class ProvidedStorage(Storage):
    """A directory on what the scheduler mounted."""

    name = "provided"
    shared = True
    Options = Options

    def __init__(self, options: Any, context: Context) -> None:
        super().__init__(options, context)
        self.shared = options.shared  # type: ignore[misc]  # told by the site, not by the class

    def unavailable(self) -> str | None:
        """See Storage."""
        if not self.options.path or not self.options.type:
            return "provided storage is told by its site: -o path=/beeond -o type=beegfs"
        path, missing = expand(self.options.path)
        if missing:
            return f"-o path={self.options.path}: the job has no ${missing}: was it asked for?"
        if not path.startswith("/"):
            return f"-o path={self.options.path} is {path!r}, and no absolute path"
        found = self.context.nodes.call(f"{_HERE}:unfit", path=path, kind=self.options.type)
        unfit = (f"{host}: {why}" for host, why in found.items() if why)
        return super().unavailable() or next(unfit, None)

    @property
    def mount(self) -> Path:
        """See Storage."""
        return Path(expand(self.options.path)[0], f"burstlab-{self.context.id}")

    def start(self) -> None:
        """See Storage."""
        hosts = [host.name for host in self.context.hosts]
        if not self._own_on_each():
            hosts = hosts[:1]
        self.context.nodes.call(f"{_HERE}:make_directory", path=str(self.mount), hosts=hosts)
        self.context.nodes.call(f"{_HERE}:write_probe", path=str(self.mount))
        names = [host.name for host in self.context.hosts]
        self.context.nodes.call(
            f"{_HERE}:read_probe", path=str(self.mount), hosts=names, shared=self.options.shared
        )

    def problems(self) -> list[str]:
        """See Storage."""
        path, _ = expand(self.options.path)
        found = self.context.nodes.call(f"{_HERE}:misfit", path=path, kind=self.options.type)
        return [f"{host}: {why}" for host, why in found.items() if why]

    def drain(self) -> None:
        """See Storage."""
        self.context.nodes.call(f"{_HERE}:write_back", path=str(self.mount))

    def stop(self) -> None:
        """See Storage; the directory goes with the lease."""

    def describe(self) -> Mapping[str, object]:
        """See Storage."""
        mount = mount_of(self.mount)
        return {
            "type": mount.type,
            "source": mount.source,
            "mount_options": mount.options,
            "shared": self.options.shared,
            "stripes": stripes(self.mount, Path(mount.path), mount.type),
        }

    def _own_on_each(self) -> bool:
        return not self.options.shared and not isinstance(self.context.nodes, VirtualNodes)


def expand(path: str) -> tuple[str, str]:
    """``path`` with each $NAME from the environment, and the first that is not there or empty."""
    missing = ""

    def value(found: re.Match[str]) -> str:
        nonlocal missing
        told = os.environ.get(found[1], "")
        missing = missing or ("" if told else found[1])
        return told

    return re.sub(r"\$([A-Za-z_]\w*)", value, path), missing


def unfit(node: Node, path: str, kind: str) -> str:
    """Node action: what is found at ``path`` when it is not what it is said to be."""
    if why := misfit(node, path, kind):
        return why
    try:
        magic = ask(["stat", "-f", "-c", "%t", "--", path]).strip()
    except StorageError as error:
        return str(error)
    if MAGIC.get(kind, magic) != magic:
        return f"{path} is mounted as {kind}, and statfs tells another type: 0x{magic}"
    return ""


def misfit(node: Node, path: str, kind: str) -> str:
    """Node action: as ``unfit``, by the mount table alone: nothing is touched."""
    mount = mount_of(path)
    if mount.type != kind:
        return f"{path} is no {kind}: {_told(mount)}"
    return ""


def make_directory(node: Node, path: str, hosts: list[str]) -> None:
    """Node action: the cell's directory, on those hosts. Raises OSError."""
    if node.host.name in hosts:
        node.lease.directory(path)


def write_probe(node: Node, path: str) -> None:
    """Node action: a file that this host writes."""
    leave_probe(path, node.host.name)


def read_probe(node: Node, path: str, hosts: list[str], shared: bool) -> None:
    """Node action: the next host's file (its own, where each has another) is there."""
    take_probe(path, following(hosts, node.host.name) if shared else node.host.name)


def write_back(node: Node, path: str) -> None:
    """Node action: what this host wrote is on the servers."""
    synchronize(path)


def _told(mount: Mount) -> str:
    return f"{mount.type} from {mount.source} is mounted at {mount.path}"
