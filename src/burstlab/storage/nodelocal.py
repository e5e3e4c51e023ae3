"""`nodelocal`: each node's own scratch directory, separate from node to node."""

import os
from collections.abc import Mapping
from pathlib import Path

from burstlab.mounts import mount_of
from burstlab.nodes import Node
from burstlab.storage.interface import Storage


class NodeLocalStorage(Storage):
    """A directory on every node's local file system."""

    name = "nodelocal"
    shared = False
    local = True

    @property
    def mount(self) -> Path:
        """See Storage; on virtual nodes each has a path of its own, and this is the first's."""
        return self.context.hosts[0].local_dir / "data"

    def start(self) -> None:
        """See Storage."""
        self.context.nodes.call("burstlab.storage.nodelocal:make_directory")

    def drain(self) -> None:
        """See Storage."""
        self.context.nodes.call("burstlab.storage.nodelocal:write_back")

    def stop(self) -> None:
        """See Storage; the directories go with the leases."""

    def describe(self) -> Mapping[str, object]:
        """See Storage."""
        mount = mount_of(self.mount)
        return {"type": mount.type, "source": mount.source, "mount_options": mount.options}


def make_directory(node: Node) -> None:
    """Node action: the directory, seen to take a byte and give it back."""
    directory = node.host.local_dir / "data"
    node.lease.directory(directory)
    probe(directory)


def write_back(node: Node) -> None:
    """Node action: everything written is on the device."""
    sync_filesystem(node.host.local_dir / "data")


def probe(directory: Path) -> None:
    """Write a file, read it back, remove it. Raises OSError."""
    path = directory / ".burstlab-probe"
    path.write_bytes(b"burstlab")
    if path.read_bytes() != b"burstlab":
        raise OSError(f"{path}: what was read is not what was written")
    path.unlink()


def sync_filesystem(directory: Path) -> None:
    """fsync(2) of every file below ``directory``: other files on the device cost us nothing."""
    for where, _, names in os.walk(directory):
        for name in names:
            try:
                descriptor = os.open(Path(where, name), os.O_RDONLY | os.O_NOFOLLOW)
            except OSError:
                continue  # a link, a socket, or gone meanwhile
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
