"""Extended attributes (xattr(7)); names and C arguments as in struct fuse_operations."""

import ctypes
import errno
import os
from typing import Any

from burstlab.pfs.serving import Serving, metadata, served


class ExtendedAttributes(Serving):
    """Passed through, access control lists included where the exported file system has them."""

    @served
    def getxattr(self, path: bytes, name: bytes, buffer: Any, size: int) -> int:
        """getxattr(2).

        Free of cost are what the kernel asks for at every write (security.capability), and the
        access control list, which a server sends along with the attributes.
        """
        if name.startswith(b"security."):
            return -errno.ENODATA
        if name.startswith(b"system."):
            return self._value(path, name, buffer, size)
        return self._getxattr(path, name, buffer, size)

    @metadata
    def _getxattr(self, path: bytes, name: bytes, buffer: Any, size: int) -> int:
        return self._value(path, name, buffer, size)

    def _value(self, path: bytes, name: bytes, buffer: Any, size: int) -> int:
        value = os.getxattr(self.reading(path), name, follow_symlinks=self._follow(path))
        return _answer(value, buffer, size)

    @metadata
    def listxattr(self, path: bytes, buffer: Any, size: int) -> int:
        """listxattr(2)."""
        names = os.listxattr(self.reading(path), follow_symlinks=self._follow(path))
        return _answer(b"".join(os.fsencode(name) + b"\0" for name in names), buffer, size)

    @metadata
    def setxattr(self, path: bytes, name: bytes, buffer: Any, size: int, flags: int) -> None:
        """setxattr(2)."""
        value = ctypes.string_at(buffer, size)
        os.setxattr(self.writing(path), name, value, flags, follow_symlinks=self._follow(path))

    @metadata
    def removexattr(self, path: bytes, name: bytes) -> None:
        """removexattr(2)."""
        os.removexattr(self.writing(path), name, follow_symlinks=self._follow(path))

    def _follow(self, path: bytes) -> bool:
        return self.unlinked.find(path) is not None


def _answer(value: bytes, buffer: Any, size: int) -> int:
    if size == 0:
        return len(value)
    if len(value) > size:
        return -errno.ERANGE
    ctypes.memmove(buffer, value, len(value))
    return len(value)
