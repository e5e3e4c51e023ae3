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
