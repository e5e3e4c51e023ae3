"""Files that are open and have no name any more.

Before an open file is unlinked, or overwritten by rename, libfuse asks to rename it to
``.fuse_hidden`` and 16 hexadecimal digits (node number, counter), and to unlink that name at
the last close. The hidden file would be in the way of rmdir and would stay after a crash. So
the file is unlinked at once, and the hidden name leads to a descriptor of it.
"""

import os
import re
import time

_HIDDEN = re.compile(rb"/\.fuse_hidden[0-9a-f]{16}$")


def is_hidden(path: bytes) -> bool:
    """True for the names that libfuse gives to unlinked open files."""
    return _HIDDEN.search(path) is not None


class Unlinked:
    """Hidden names to descriptors (O_PATH)."""

    def __init__(self) -> None:
        self._descriptors: dict[bytes, int] = {}
        self._last_s = 0.0  # when one was added, by the monotonic clock

    def since(self, seconds: float) -> bool:
        """Whether there is any, and one was added within so many seconds."""
        return bool(self._descriptors) and time.monotonic() < self._last_s + seconds

    def unlink(self, real: bytes, hidden: bytes) -> None:
        """Unlink ``real`` and keep it reachable as ``hidden``. Raises OSError."""
        descriptor = os.open(real, os.O_PATH | os.O_NOFOLLOW)
        try:
            os.unlink(real)
        except OSError:
            os.close(descriptor)
            raise
        self._descriptors[hidden] = descriptor
        self._last_s = time.monotonic()

    def find(self, path: bytes) -> bytes | None:
        """A link that leads to the file, to be followed; None for an ordinary path."""
        descriptor = self._descriptors.get(path)
        return None if descriptor is None else b"/proc/self/fd/%d" % descriptor

    def forget(self, hidden: bytes) -> bool:
        """Let go of a file after its last close; False for an ordinary path."""
        descriptor = self._descriptors.pop(hidden, None)
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is not None

    def forget_below(self, directory: bytes) -> None:
        """Let go of files whose directory was removed: libfuse never names them again."""
        for hidden in [name for name in self._descriptors if name.startswith(directory + b"/")]:
            self.forget(hidden)
