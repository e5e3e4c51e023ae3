import os
from collections.abc import Sequence
from typing import final

__version__: str

class StagingFault(Exception):
    """The first file that could not be staged, and why, in one line."""

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
    ) -> Copy:
        """Begin. ``files``: path below both, size in bytes, SHA-256 (empty: not known).

        Raises StagingFault when the target can't be made or has no room.
        """
    def wait(self, longest_s: float) -> bool:
        """Whether all is copied and durable, no later than this. Raises StagingFault."""
    def cancel(self) -> None:
        """Stop soon; files that are not whole go away."""
    def progress(self) -> Progress:
        """How far it has come."""
