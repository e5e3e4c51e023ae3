"""The site's parallel file system: where data sets come from and results go."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from burstlab.errors import StorageError
from burstlab.lease import Lease
from burstlab.mounts import mount_of, mounted_at
from burstlab.pfs.emulation import SOURCE, Emulation
from burstlab.supervision import Supervisor, ended_how, last_words

DATASET = "dataset"  # the export that nobody may write


class ParallelFileSystem(Protocol):
    """A parallel file system as one cell uses it."""

    work: Path  # the cell's own directory on it, made by start, gone at the end

    def start(self, supervisor: Supervisor) -> None:
        """Make it usable. Raises StorageError."""

    def seen(self, path: Path) -> Path:
        """``path`` (in the data set or the cell's results) as it is reached through the PFS."""

    def stop(self) -> None:
        """Take down in order; harmless when nothing was started."""

    def describe(self) -> Mapping[str, object]:
        """For the record; ``emulated`` is always in it."""


class MountedPfs:
    """A parallel file system that is there: a directory of it that the user may write."""

    def __init__(self, directory: Path, identifier: str, lease: Lease) -> None:
        self._directory = directory
        self._lease = lease
        self.work = directory / f"burstlab-{identifier}.pfs"  # --local-dir may be the same

    def start(self, supervisor: Supervisor) -> None:
        """See ParallelFileSystem."""
        try:
            supervisor.call(self._make_directory)
        except OSError as error:
            raise StorageError(
                f"pfs {self._directory}: {error.strerror}: {error.filename}"
            ) from error

    def _make_directory(self) -> None:
        self._lease.directory(self.work)

    def seen(self, path: Path) -> Path:
        """See ParallelFileSystem."""
        return path

    def stop(self) -> None:
        """See ParallelFileSystem."""

    def describe(self) -> Mapping[str, object]:
        """See ParallelFileSystem."""
        mount = mount_of(self._directory)
        return {
            "emulated": mount.source == SOURCE,
            "type": mount.type,
            "source": mount.source,
            "mount_options": mount.options,
        }


class EmulatedPfs:
    """The emulator, started for this cell: ``python -m burstlab.pfs`` (docs/emulated-pfs.md)."""

    def __init__(
        self, directory: Path, emulation: Emulation, exports: Mapping[str, Path], lease: Lease
    ) -> None:
        """``directory`` is node-local; ``exports`` names the directories seen through the PFS."""
        self._mount = directory / "pfs"
        self._backing = directory / "pfs-backing"
        self._emulation = emulation
        self._exports = {**exports, "work": self._backing}
        self._lease = lease
        self._log = directory / "pfs.log"
        self.work = self._mount / "work"

    def start(self, supervisor: Supervisor) -> None:
        """See ParallelFileSystem."""
        self._lease.directory(self._backing)
        self._lease.directory(self._mount)
        self._lease.mount(self._mount)
        exports = [
            f"{name}={path}{':ro' if name == DATASET else ''}"
            for name, path in self._exports.items()
        ]
        flags = [part for export in exports for part in ("--export", export)]
        command = [sys.executable, "-m", "burstlab.pfs", str(self._mount), *flags]
        with self._log.open("wb") as log:
            child = self._lease.spawn([*command, *self._emulation.arguments()], "emulated pfs", log)
        deadline = time.monotonic() + 20
        while mounted_at(self._mount) is None:
            if child.poll() is not None or time.monotonic() > deadline:
                raise StorageError(f"the emulated pfs did not start: {self._why(child.poll())}")
            time.sleep(0.005)
        if mounted_at(self._mount).source != SOURCE:  # type: ignore[union-attr]
            raise StorageError(f"{self._mount} is not the emulated pfs")

    def seen(self, path: Path) -> Path:
        """See ParallelFileSystem. Raises StorageError for a path that is not exported."""
        for name, exported in self._exports.items():
            if path == exported or exported in path.parents:
                return self._mount / name / path.relative_to(exported)
        raise StorageError(f"{path} is not on the emulated pfs: {', '.join(self._exports)} are")

    def stop(self) -> None:
        """See ParallelFileSystem."""
        child = self._lease.children.pop("emulated pfs", None)
        if child is not None:
            child.terminate()
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()

    def describe(self) -> Mapping[str, object]:
        """See ParallelFileSystem."""
        return {"emulated": True, "type": "fuse", **self._emulation._asdict()}

    def _why(self, status: int | None) -> str:
        how = "it was not mounted within 20 s" if status is None else ended_how(status)
        return f"{how}: {last_words(self._log.read_text(errors='replace'))}"
