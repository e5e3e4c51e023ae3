"""What one cell is asked to do, checked; nothing here starts anything."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from burstlab.allocation import Allocation
from burstlab.pfs.emulation import Emulation
from burstlab.record import CellKey
from burstlab.storage.interface import Storage

if TYPE_CHECKING:
    from burstlab.dataset.manifest import Manifest

STAGINGS = ("none", "eager", "lazy")
# How a data set gets to the hosts (burstlab.staging, docs/how-to/stage-a-dataset.md).
STAGING_METHODS = ("copy", "tree", "shard", "archive", "paper")
# What counts a workload's reads and writes (burstlab.tracing, docs/how-to/trace-io.md).
TRACERS = ("strace", "bpftrace")
PATTERN_WANTED = "a pattern below $BURSTLAB_MOUNT is wanted, such as out/*"


def is_below(pattern: str) -> bool:
    """Whether a pattern of results stays in the directory that it is looked for in."""
    return bool(pattern) and not Path(pattern).is_absolute() and ".." not in Path(pattern).parts


class Request(NamedTuple):
    """What `burstlab run` was asked for, checked."""

    key: CellKey
    allocation: Allocation
    command: tuple[str, ...]
    storage: type[Storage]
    storage_options: Any
    pfs: Path | Emulation | None  # a directory, the emulator's costs, or none at all
    local_dir: Path  # base of node-local scratch
    cell_dir: Path
    launch: str = "local"
    launch_options: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()
    manifest: "Manifest | None" = None
    staging: str = "none"
    staging_method: str = "copy"  # of eager staging: one of STAGING_METHODS
    order: Path | None = None  # of lazy staging: a list of paths
    peers: bool = False  # of lazy staging: hosts read for one another
    cache: str = "as-is"
    drop_caches: str = ""
    stage_out: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    time_limit_s: float = 0.0
    trace: str = ""  # by what its reads and writes are counted: one of TRACERS, or not at all
    repeat_command: tuple[str, ...] = ()  # what the user types to run it again

    @property
    def title(self) -> str:
        """What a log calls the cell."""
        key = self.key
        name = key.workload or Path(self.command[0]).name
        return f"{name} {key.storage}-{key.staging} n{key.nodes} r{key.repeat}"
