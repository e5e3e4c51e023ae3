"""`pfs`: work on the site's parallel file system itself, the baseline of every comparison."""

from collections.abc import Mapping
from pathlib import Path

from burstlab.errors import StorageError
from burstlab.mounts import mount_of
from burstlab.storage.interface import Storage
from burstlab.storage.nodelocal import probe, sync_filesystem

STRIPED = ("beegfs", "lustre")


class PfsStorage(Storage):
    """A directory of the cell's own on the parallel file system."""

    name = "pfs"
    shared = True

    @property
    def mount(self) -> Path:
        """See Storage."""
        return self.context.pfs.work / "data"

    def start(self) -> None:
        """See Storage; the cell has started the parallel file system already."""
        try:
            self.mount.mkdir(0o700)
            probe(self.mount)
        except OSError as error:
            raise StorageError(f"pfs {self.mount}: {error.strerror}") from error

    def drain(self) -> None:
        """See Storage."""
        sync_filesystem(self.mount)

    def stop(self) -> None:
        """See Storage; the cell takes the parallel file system down."""

    def describe(self) -> Mapping[str, object]:
        """See Storage; with the stripes of the cell's directory, where its type has them."""
        told = self.context.pfs.describe()
        if told["type"] not in STRIPED:
            return told
        from burstlab.storage.stripes import stripes

        where = mount_of(self.mount)
        return {**told, "stripes": stripes(self.mount, Path(where.path), str(told["type"]))}
