"""What all operations share: the exports, the costs, the stall, and how an error is answered."""

import errno
import functools
import os
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from burstlab.pfs import libfuse
from burstlab.pfs.costs import Costs
from burstlab.pfs.exports import Exports
from burstlab.pfs.unlinked import Unlinked


class Serving:
    """Base of the two halves of the file system, names and data."""

    def __init__(self, exports: Exports, costs: Costs) -> None:
        self.exports = exports
        self.costs = costs
        self.unlinked = Unlinked()
        self.stalled = False
        self._sent: set[int | bytes] = set()
        self._resumed = threading.Event()

    def callbacks(self) -> dict[str, Callable[..., int]]:
        """The operations by their names in struct fuse_operations."""
        kind = type(self)
        names = [name for name in dir(kind) if hasattr(getattr(kind, name), "is_callback")]
        return {name: getattr(self, name) for name in names}

    def toggle_stall(self) -> bool:
        """Stall all operations, or let them go on; returns whether they are stalled now."""
        if self.stalled:
            self.stalled = False
            self._resumed.set()
        else:
            self._resumed.clear()
            self.stalled = True
        return self.stalled

    def wait_while_stalled(self) -> None:
        """As a client waits for dead servers: for ever, unless the mount itself is ended."""
        while self.stalled and not libfuse.ending():
            self._resumed.wait(0.1)

    def reading(self, path: bytes) -> bytes:
        """Where ``path`` lies. Raises OSError."""
        return self.unlinked.find(path) or self.exports.reading(path)

    def writing(self, path: bytes) -> bytes:
        """Where ``path`` lies, to be changed. Raises OSError."""
        return self.unlinked.find(path) or self.exports.writing(path)

    def entry(self, path: bytes) -> bytes:
        """Where ``path`` lies, to add or remove this name. Raises OSError.

        The answer carries the new attributes of its directory (as in NFS, RFC 1813, wcc_data).
        """
        self._sent.add(path.rpartition(b"/")[0] or b"/")
        return self.exports.entry(path)

    def carry_attributes(self) -> None:
        """The answer of the operation in this thread carries attributes."""
        self._sent.add(threading.get_ident())

    def attributes_came_along(self, path: bytes | None) -> bool:
        """True when an earlier answer carried the attributes that are asked for now.

        libfuse asks for the attributes of what was made or changed in a call of its own, the next
        one in the same thread, and the kernel asks for those of the directory.
        """
        for key in (threading.get_ident(), path):
            if key in self._sent:
                self._sent.discard(key)
                return True
        return False

    def give_to_caller(self, created: bytes) -> None:
        """A server that runs as root made ``created``; the client's user is to own it."""
        if os.geteuid() != 0:
            return
        uid, gid = libfuse.caller()
        if (uid, gid) != (0, 0):
            inherits_group = os.stat(os.path.dirname(created)).st_mode & 0o2000
            os.lchown(created, uid, -1 if inherits_group else gid)


def served(operation: Callable[..., int | None]) -> Callable[..., int]:
    """A callback that sees to its own waiting."""

    @functools.wraps(operation)
    def callback(self: Serving, *arguments: Any) -> int:
        if self.stalled:
            self.wait_while_stalled()
        return _outcome(operation, self, *arguments)

    callback.is_callback = True  # type: ignore[attr-defined]
    return callback


def metadata(operation: Callable[..., int | None]) -> Callable[..., int]:
    """A callback that costs one operation at the metadata server, whether it succeeds or not."""

    @functools.wraps(operation)
    def callback(self: Serving, *arguments: Any) -> int:
        if self.stalled:
            self.wait_while_stalled()
        end = self.costs.metadata(time.monotonic())
        result = _outcome(operation, self, *arguments)
        wait_until(end)
        return result

    callback.is_callback = True  # type: ignore[attr-defined]
    return callback


def change(operation: Callable[..., int | None]) -> Callable[..., int]:
    """As ``metadata``; its answer carries the attributes of what was made or changed."""
    paid = metadata(operation)

    @functools.wraps(paid)
    def callback(self: Serving, *arguments: Any) -> int:
        result = paid(self, *arguments)
        if result == 0:
            self.carry_attributes()
        return result

    return callback


def wait_until(end: float) -> None:
    """Sleep until the monotonic clock shows ``end``."""
    delay_s = end - time.monotonic()
    if delay_s > 0:
        time.sleep(delay_s)


def _outcome(operation: Callable[..., int | None], *arguments: Any) -> int:
    try:
        return operation(*arguments) or 0
    except OSError as error:
        return -(error.errno or errno.EIO)
    except Exception:  # an exception must not cross into libfuse
        traceback.print_exc()
        return -errno.EIO
