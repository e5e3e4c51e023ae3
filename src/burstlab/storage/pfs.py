"""`pfs`: work on the site's parallel file system itself, the baseline of every comparison."""

from collections.abc import Mapping
from pathlib import Path

from burstlab.errors import StorageError
from burstlab.storage.interface import Storage
from burstlab.storage.nodelocal import probe, sync_filesystem


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
        """See Storage."""
        return self.context.pfs.describe()
