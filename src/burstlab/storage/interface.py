"""What every storage provider offers, and what it gets to work with."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from burstlab.lease import Lease
from burstlab.nodes import Host, Nodes
from burstlab.pfs.site import ParallelFileSystem

if TYPE_CHECKING:
    from burstlab.dataset.manifest import Manifest


class NoOptions(NamedTuple):
    """A storage without options."""


class Context(NamedTuple):
    """What a provider gets of the cell it serves."""

    id: str
    directory: Path  # the cell's own, node-local, the same path on every host, gone at the end
    nodes: Nodes
    lease: Lease  # of this host; the other hosts' are reached through ``nodes``
    pfs: ParallelFileSystem
    needs: frozenset[str]  # of the workload: "shared" (one name space), "mmap" (MAP_SHARED)
    time_limit_s: float  # 0: none

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The cell's hosts, the one the workload starts on first."""
        return self.nodes.hosts


class Storage(ABC):
    """One provisioned storage, for one cell.

    ``start`` may fail anywhere and ``stop`` is called after it all the same; what ``stop``
    leaves behind, the leases clean.
    """

    name: ClassVar[str]
    shared: ClassVar[bool]  # one name space for all hosts
    local: ClassVar[bool] = False  # what a host writes lies on its own disk
    Options: ClassVar[type[Any]] = NoOptions  # its fields: str, int, float and bool

    def __init__(self, options: Any, context: Context) -> None:
        self.options = options
        self.context = context

    def unavailable(self) -> str | None:
        """One sentence why this storage can't serve this cell here, or None."""
        if "shared" in self.context.needs and not self.shared and len(self.context.hosts) > 1:
            return (
                f"the workload needs one name space for its {len(self.context.hosts)} nodes, "
                f"and {self.name} is separate on each"
            )
        return None

    @property
    @abstractmethod
    def mount(self) -> Path:
        """The cell's own directory on this storage, empty at the start."""

    @abstractmethod
    def start(self) -> None:
        """Provision on all hosts; returns when every host was seen to read and write.

        Raises StorageError or NodeError.
        """

    def environment(self) -> Mapping[str, str]:
        """What the workload gets besides, to reach this storage by its own programs."""
        return {}

    def stage_in(
        self, manifest: "Manifest", source: Path, target: Path
    ) -> Mapping[str, object] | None:
        """Copy the data set's files below ``source`` to the new directory ``target``, verified.

        For a storage with a better way than copies by one host; in a forked child. Returns how it
        was done, for the record. None: nothing was done, and burstlab copies. Raises StagingError
        naming the file.
        """
        return None

    def problems(self) -> list[str]:
        """What is wrong now, by cheap means: asked again and again while the workload runs.

        The death of a process spawned through the lease is noticed without this. Must not touch
        the mount: whoever touches a mount whose server died may hang.
        """
        return []

    def verify(self) -> list[str]:
        """What is wrong with the data at the end, by thorough means; runs in a forked child."""
        return []

    @abstractmethod
    def drain(self) -> None:
        """Returns when everything written is on the storage's own media; in a forked child."""

    @abstractmethod
    def stop(self) -> None:
        """Take down in order. Harmless when nothing was started, and when called twice."""

    def describe(self) -> Mapping[str, object]:
        """For the record: what the data lay on (file system type, mount options, stripes)."""
        return {}
