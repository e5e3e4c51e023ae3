"""Operations on names and attributes.

Methods carry the names and C arguments of struct fuse_operations (libfuse 3, fuse.h).
"""

import ctypes
import itertools
import os
import stat
import time
from typing import Any

from burstlab.pfs import libfuse
from burstlab.pfs.costs import Costs
from burstlab.pfs.exports import Exports
from burstlab.pfs.libc import check, libc
from burstlab.pfs.serving import Serving, change, metadata, served, wait_until
from burstlab.pfs.unlinked import is_hidden

STRIPE_BYTES = 1 << 20  # st_blksize: what stdio buffers, what a request carries at most
ENTRIES_PER_MESSAGE = 1024  # directory entries with attributes in a reply of about 1 MiB
READDIR_PLUS, FILL_DIR_PLUS = 1, 2  # enum fuse_readdir_flags, enum fuse_fill_dir_flags
AT_SYMLINK_NOFOLLOW = 0x100
STATFS_FIELDS = (
    *("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail"),
    *("f_files", "f_ffree", "f_favail", "f_namemax"),
)


class Names(Serving):
    """The metadata server's half."""

    def __init__(self, exports: Exports, costs: Costs) -> None:
        super().__init__(exports, costs)
        self._numbers = itertools.count(1)
        self._open: dict[int, bytes] = {}  # directories by handle
        self._entries: dict[int, list[tuple[bytes, bytes]]] = {}  # of each: (name, where it lies)

    @served
    def getattr(self, path: bytes | None, buffer: Any, open_file: Any) -> None:
        """stat(2), lstat(2), fstat(2)."""
        if self.attributes_came_along(path):
            self._attributes(path, buffer.contents, open_file)
            return
        end = self.costs.metadata(time.monotonic())
        try:
            self._attributes(path, buffer.contents, open_file)
        finally:
            wait_until(end)

    def _attributes(self, path: bytes | None, found: Any, open_file: Any) -> None:
        if path is None:
            fill(found, os.fstat(open_file.contents.fh))
        elif path == b"/":
            found.st_mode, found.st_nlink, found.st_ino = stat.S_IFDIR | 0o755, 2, 1
        elif unlinked := self.unlinked.find(path):
            fill(found, os.stat(unlinked))
        else:
            fill(found, os.lstat(self.exports.reading(path)))

    @served
    def opendir(self, path: bytes, open_directory: Any) -> None:
        """opendir(3)."""
        open_directory.contents.fh = number = next(self._numbers)
        self._open[number] = path

    @served
    def readdir(
        self, _: None, buffer: Any, add: Any, offset: int, open_directory: Any, flags: int
    ) -> None:
        """Entries from number ``offset`` on, with their attributes, until ``buffer`` is full.

        The kernel asks a few KiB at a time; what is paid for are the batches a server sends.
        """
        began, number = time.monotonic(), open_directory.contents.fh
        if offset == 0:
            self._entries[number] = self._list(self._open[number])
        entries, attributes, place = self._entries[number], libfuse.bindings().c_stat(), offset
        plus = FILL_DIR_PLUS if flags & READDIR_PLUS else 0
        for place in range(offset, len(entries)):
            name, real = entries[place]
            try:
                fill(attributes, os.lstat(real))
            except FileNotFoundError:
                continue  # it went since
            if add(buffer, name, attributes, place + 1, plus):
                break
        else:
            place = len(entries)
        batches = -(-place // ENTRIES_PER_MESSAGE) - -(-offset // ENTRIES_PER_MESSAGE)
        if batches:
            wait_until(self.costs.metadata(began, batches))

    def _list(self, path: bytes) -> list[tuple[bytes, bytes]]:
        if path == b"/":
            return self.exports.listing()
        real = self.exports.reading(path)
        return [(name, real + b"/" + name) for name in (b".", b"..", *os.listdir(real))]

    @metadata
    def fsyncdir(self, _: None, data_only: int, open_directory: Any) -> None:
        """fsync(2) of a directory."""
        path = self._open[open_directory.contents.fh]
        if path != b"/":
            descriptor = os.open(self.exports.reading(path), os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @served
    def releasedir(self, _: None, open_directory: Any) -> None:
        """closedir(3)."""
        number = open_directory.contents.fh
        self._entries.pop(number, None)
        del self._open[number]

    @metadata
    def readlink(self, path: bytes, buffer: Any, size: int) -> None:
        """readlink(2); libfuse wants the text cut to ``size`` with its final NUL."""
        text = os.readlink(self.exports.reading(path))[: size - 1] + b"\0"
        ctypes.memmove(buffer, text, len(text))

    @change
    def mknod(self, path: bytes, mode: int, device: int) -> None:
        """mknod(2)."""
        real = self.entry(path)
        os.mknod(real, mode, device)
        self.give_to_caller(real)

    @change
    def mkdir(self, path: bytes, mode: int) -> None:
        """mkdir(2)."""
        real = self.entry(path)
        os.mkdir(real, mode)
        self.give_to_caller(real)

    @change
    def symlink(self, text: bytes, path: bytes) -> None:
        """symlink(2)."""
        real = self.entry(path)
        os.symlink(text, real)
        self.give_to_caller(real)

    @metadata
    def unlink(self, path: bytes) -> None:
        """unlink(2)."""
        if not self.unlinked.forget(path):
            os.unlink(self.entry(path))

    @metadata
    def rmdir(self, path: bytes) -> None:
        """rmdir(2)."""
        os.rmdir(self.entry(path))
        self.unlinked.forget_below(path)

    @metadata
    def rename(self, old: bytes, new: bytes, flags: int) -> None:
        """renameat2(2), its flags included."""
        real_old, real_new = self._pair(old, new)
        if is_hidden(new):
            self.unlinked.unlink(real_old, new)
        elif flags:
            check(libc.renameat2(-1, real_old, -1, real_new, flags))
        else:
            os.rename(real_old, real_new)

    @change
    def link(self, old: bytes, new: bytes) -> None:
        """link(2)."""
        real_old, real_new = self._pair(old, new)
        os.link(real_old, real_new, follow_symlinks=False)

    @change
    def chmod(self, path: bytes, mode: int, open_file: Any) -> None:
        """chmod(2); a symbolic link never gets here."""
        os.chmod(self.writing(path), stat.S_IMODE(mode))

    @change
    def chown(self, path: bytes, uid: int, gid: int, open_file: Any) -> None:
        """lchown(2); an id of all ones (-1) stays as it is."""
        check(libc.fchownat(-1, self.writing(path), uid, gid, self._no_follow(path)))

    @change
    def utimens(self, path: bytes, times: Any, open_file: Any) -> None:
        """utimensat(2), UTIME_NOW and UTIME_OMIT included."""
        check(libc.utimensat(-1, self.writing(path), times, self._no_follow(path)))

    @metadata
    def statfs(self, path: bytes, buffer: Any) -> None:
        """statvfs(3); the mount point itself answers for the first export."""
        real = self.exports.directories[0] if path == b"/" else self.reading(path)
        found = os.statvfs(real)
        for name in STATFS_FIELDS:
            setattr(buffer.contents, name, getattr(found, name))

    def _pair(self, old: bytes, new: bytes) -> tuple[bytes, bytes]:
        found = self.entry(old), self.entry(new)
        self.exports.check_same(old, new)
        return found

    def _no_follow(self, path: bytes) -> int:
        return 0 if self.unlinked.find(path) else AT_SYMLINK_NOFOLLOW


def fill(attributes: Any, status: os.stat_result) -> None:
    """struct stat from what os.stat gives."""
    attributes.st_mode = status.st_mode
    attributes.st_ino = status.st_ino
    attributes.st_nlink = status.st_nlink
    attributes.st_uid = status.st_uid
    attributes.st_gid = status.st_gid
    attributes.st_rdev = status.st_rdev
    attributes.st_size = status.st_size
    attributes.st_blksize = STRIPE_BYTES
    attributes.st_blocks = status.st_blocks
    for field, time_ns in (
        (attributes.st_atimespec, status.st_atime_ns),
        (attributes.st_mtimespec, status.st_mtime_ns),
        (attributes.st_ctimespec, status.st_ctime_ns),
    ):
        field.tv_sec, field.tv_nsec = divmod(time_ns, 10**9)
