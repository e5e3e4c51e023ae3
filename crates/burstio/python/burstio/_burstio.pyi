import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self, final

from burstio.peers import Peers

__version__: str

class StagingFault(Exception):
    """The first file that could not be staged, and why, in one line."""

class PeerLost(StagingFault):
    """Another node of a broadcast has failed, and tells why."""

@final
class Progress:
    """How far a staging has come."""

    @property
    def files(self) -> int:
        """Files that are whole in the target."""
    @property
    def present(self) -> int:
        """Of these: those that were there already."""
    @property
    def size_bytes(self) -> int:
        """Bytes in the target, parts of files included."""
    @property
    def in_flight(self) -> int:
        """Files that may be in flight now."""

@final
class Copy:
    """A staging that runs in threads of its own; cancelled when it is let go of."""

    def __new__(
        cls,
        source: str | os.PathLike[str],
        target: str | os.PathLike[str],
        files: Sequence[tuple[str, int, str]],
        most_in_flight: int = 256,
        children: Sequence[str] = (),
        token: bytes = ...,
    ) -> Copy:
        """Begin. ``files``: path below both, size in bytes, SHA-256 (empty: not known).

        ``children``: host:port of each Listening that everything is sent to; 16 bytes of ``token``
        make sure of it. Raises StagingFault when the target can't be made or has no room.
        """
    def wait(self, longest_s: float) -> bool:
        """Whether all is copied and durable, no later than this. Raises StagingFault."""
    def cancel(self) -> None:
        """Stop soon; files that are not whole go away."""
    def progress(self) -> Progress:
        """How far it has come."""

@final
class Listening:
    """A node of a broadcast, whose files come from another node."""

    def __new__(
        cls,
        target: str | os.PathLike[str],
        files: Sequence[tuple[str, int, str]],
        token: bytes,
    ) -> Listening:
        """Make the directories and listen."""
    @property
    def port(self) -> int:
        """Where it listens, on all addresses of this host."""
    def begin(self, children: Sequence[str]) -> Copy:
        """Receive everything, and send it on to each host:port of ``children``."""

class _Closing:
    """Closed at the end of a ``with``."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Sample:
    """One file's bytes, in the engine's memory, read only: ``memoryview(sample)``."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Stream(_Closing):
    """One consumer: what it will take, in order."""

    def plan(self, indices: Sequence[int]) -> None:
        """Append to what will be taken; any buffer of integers of 4 or 8 bytes does as well.

        Raises IndexError naming an index that is no file's.
        """
    def take(self, count: int) -> list[tuple[int, Sample]]:
        """The next ``count`` samples, fewer at the end of the plan.

        Raises OSError naming a file that can't be read or does not come in time, ConnectionError.
        """
    @property
    def remaining(self) -> int:
        """Samples that are planned and not taken."""
    def reset(self) -> None:
        """Forget what is planned and not taken."""
    def close(self) -> None:
        """The same, for good."""

class _Feeds(_Closing):
    @property
    def count(self) -> int:
        """Number of files."""
    def stream(self) -> Stream:
        """A new consumer."""
    def statistics(self) -> dict[str, int]:
        """Counters (docs/prefetching.md)."""
    def waits(self) -> list[int]:
        """Minibatches by how long they were waited for: [i] waited less than 2^i us."""
    def drain(self) -> None:
        """Wait until all that has been read is written to the cache."""
    def close(self) -> int:
        """End; who waits in ``take`` gets ValueError. Returns the threads that a stalled source or
        disk still holds (0 from a Client, whose agent goes on).
        """

@final
class Engine(_Feeds):
    """Reads the files of a data set ahead, in threads of this process."""

    def __new__(
        cls,
        root: str | os.PathLike[str],
        files: Sequence[str],
        *,
        sizes: Sequence[int] | None = None,
        identity: str = "",
        memory_bytes: int = 268435456,
        in_flight: tuple[int, int] = (8, 256),
        look_ahead: int = 16384,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: float | None = None,
        cache_keep_free: float = 0.05,
        keep: bool = False,
        segments: bool = True,
        tee: bool = True,
        peers: Peers | None = None,
        time_limit_s: float = 30.0,
    ) -> Engine: ...
    def peer_faults(self) -> list[str]:
        """Of each peer that failed: its name, its address, and how it failed first."""
    def mount(self, directory: str | os.PathLike[str], order: Sequence[int] | None = None) -> Mount:
        """Mount the data set, read only, and fill the cache in this order. Raises OSError."""
    def serve(self, socket: str | os.PathLike[str]) -> Agent:
        """Serve other processes of this user, on a socket in a directory of mode 0700.

        Raises OSError where another agent listens there, or others may enter the directory.
        """

@final
class Client(_Feeds):
    """A connection to an agent. Raises ConnectionError where there is none, or it hangs."""

    def __new__(cls, socket: str | os.PathLike[str]) -> Client: ...

@final
class Agent(_Closing):
    """Serves an engine until it is closed; closing it closes the engine."""

    def close(self) -> int:
        """End all connections and the engine; as ``Engine.close``."""

@final
class Mount(_Closing):
    """The data set as a directory, as long as this is open."""

    def close(self) -> None:
        """Unmount. Raises OSError where somebody is still in it, TimeoutError where a read of the
        source does not return.
        """

@final
class Permutations:
    """What ``numpy.random.RandomState(seed).permutation(count)`` gives, call after call."""

    def __new__(cls, seed: int) -> Permutations: ...
    def next(self, count: int) -> bytes:
        """As unsigned integers of 4 bytes."""

@final
class EmulatedPfs:
    """A mounted emulated parallel file system (docs/emulated-pfs.md); served until unmounted."""

    def __new__(
        cls,
        mountpoint: str | os.PathLike[str],
        exports: Sequence[tuple[str, str | os.PathLike[str], bool]],
        *,
        metadata_latency_ms: float,
        io_latency_ms: float,
        bandwidth_mb_s: float,
        metadata_rate: float,
    ) -> EmulatedPfs:
        """Mount. ``exports``: (name at the top, directory, whether read-only).

        Raises OSError when it can't be mounted or an export can't be opened.
        """
    def unmount(self) -> None:
        """Though files be open and operations wait. Raises OSError."""
    def toggle_stall(self) -> bool:
        """Let all operations wait, or go on; returns whether they wait now."""
    def wait(self) -> None:
        """Return when it is unmounted. Raises OSError."""
