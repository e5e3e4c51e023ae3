"""Operations on the contents of files.

Methods carry the names and C arguments of struct fuse_operations (libfuse 3, fuse.h).
"""

import ctypes
import errno
import os
import time
from typing import Any

from burstlab.pfs import libfuse
from burstlab.pfs.costs import Costs
from burstlab.pfs.exports import Exports
from burstlab.pfs.libc import check, libc
from burstlab.pfs.serving import Serving, change, metadata, served, wait_until

PASSED_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_TRUNC | os.O_EXCL
CLOSING_S = 0.5  # at most, from the last close(2) of a file until the kernel has told of it
_Memory = ctypes.c_char * (1 << 30)  # only ever a window onto libfuse's own buffer


class Data(Serving):
    """The storage servers' half. A file handle is a descriptor of the exported file."""

    def __init__(self, exports: Exports, costs: Costs) -> None:
        super().__init__(exports, costs)
        self._direct: set[int] = set()  # opened with O_DIRECT
        self._stored_at: dict[int, float] = {}  # written, not yet committed: when it is stored

    @change
    def create(self, path: bytes, mode: int, open_file: Any) -> None:
        """open(2) with O_CREAT."""
        real = self.entry(path)
        flags = open_file.contents.flags & PASSED_FLAGS
        descriptor = os.open(real, flags | os.O_CREAT | os.O_NOFOLLOW, mode)
        self._opened(descriptor, path, open_file.contents)
        self.give_to_caller(real)

    @metadata
    def open(self, path: bytes, open_file: Any) -> None:
        """open(2)."""
        flags = open_file.contents.flags & PASSED_FLAGS
        changes = flags & (os.O_ACCMODE | os.O_TRUNC)
        real = self.writing(path) if changes else self.reading(path)
        self._opened(os.open(real, flags), path, open_file.contents)

    def _opened(self, descriptor: int, path: bytes, open_file: Any) -> None:
        open_file.fh = descriptor
        if os.fstat(descriptor).st_nlink == 1:
            open_file.keep_cache = 1
        else:  # libfuse takes each name for a file of its own: another may have changed this one
            libfuse.forget_attributes(path)
        if open_file.flags & os.O_ACCMODE == os.O_RDONLY:
            open_file.noflush = 1
        if open_file.flags & os.O_DIRECT:
            self._direct.add(descriptor)

    @served
    def read(self, _: None, buffer: Any, size: int, offset: int, open_file: Any) -> int:
        """pread(2), straight into the answer."""
        began = time.monotonic()
        count = os.preadv(open_file.contents.fh, [_window(buffer, size)], offset)
        wait_until(self.costs.transfer(began, count))
        return count

    @served
    def write(self, _: None, buffer: Any, size: int, offset: int, open_file: Any) -> int:
        """pwrite(2). The client holds some of it back, unless the file is open with O_DIRECT."""
        began, descriptor = time.monotonic(), open_file.contents.fh
        count = self._store(descriptor, _window(buffer, size), offset)
        if descriptor in self._direct:
            wait_until(self.costs.transfer(began, count))
        else:
            end, self._stored_at[descriptor] = self.costs.write_behind(began, count)
            wait_until(end)
        return count

    def _store(self, descriptor: int, data: memoryview, offset: int) -> int:
        """pwrite(2). The kernel tells of a last close when close(2) is over, so the space of a file
        that was closed and removed before may come free only now."""
        while True:
            try:
                return os.pwrite(descriptor, data, offset)
            except OSError as error:
                if error.errno != errno.ENOSPC or not self.unlinked.since(CLOSING_S):
                    raise
            time.sleep(0.001)

    @served
    def flush(self, _: None, open_file: Any) -> None:
        """close(2), of any copy of the descriptor: what was written goes to the servers."""
        descriptor = open_file.contents.fh
        if descriptor in self._stored_at:
            self._commit(descriptor)
            os.close(os.dup(descriptor))  # tells of a quota, or a server, of the exported system

    @served
    def fsync(self, _: None, data_only: int, open_file: Any) -> None:
        """fsync(2), fdatasync(2)."""
        descriptor = open_file.contents.fh
        (os.fdatasync if data_only else os.fsync)(descriptor)
        self._commit(descriptor)

    def _commit(self, descriptor: int) -> None:
        now = time.monotonic()
        wait_until(self.costs.commit(now, self._stored_at.pop(descriptor, now)))

    @served
    def release(self, _: None, open_file: Any) -> None:
        """The last close(2)."""
        descriptor = open_file.contents.fh
        self._direct.discard(descriptor)
        self._stored_at.pop(descriptor, None)
        os.close(descriptor)

    @change
    def truncate(self, path: bytes, size: int, open_file: Any) -> None:
        """truncate(2), ftruncate(2)."""
        if open_file:
            os.ftruncate(open_file.contents.fh, size)
        else:
            os.truncate(self.writing(path), size)

    @metadata
    def fallocate(self, _: None, mode: int, offset: int, size: int, open_file: Any) -> None:
        """fallocate(2), punching holes included."""
        check(libc.fallocate64(open_file.contents.fh, mode, offset, size))

    @metadata
    def lseek(self, _: None, offset: int, whence: int, open_file: Any) -> int:
        """lseek(2) with SEEK_DATA and SEEK_HOLE: the kernel does the rest itself."""
        return os.lseek(open_file.contents.fh, offset, whence)


def _window(buffer: Any, size: int) -> memoryview:
    return memoryview(_Memory.from_address(ctypes.addressof(buffer.contents)))[:size]
