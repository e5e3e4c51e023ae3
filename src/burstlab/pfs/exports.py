"""The directories that an emulated parallel file system shows, and where a path of it lies."""

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from burstlab.errors import ConfigurationError


@dataclass(frozen=True)
class Export:
    """``path``, shown as MOUNTPOINT/``name``."""

    name: str
    path: Path
    read_only: bool = False

    @classmethod
    def parse(cls, text: str) -> "Export":
        """From ``NAME=PATH`` or ``NAME=PATH:ro``. Raises ConfigurationError."""
        name, equals, path = text.partition("=")
        read_only = path.endswith(":ro")
        path = path.removesuffix(":ro")
        if not equals or not path or not name or "/" in name or name.startswith("."):
            raise ConfigurationError(f"--export {text}: give NAME=DIRECTORY or NAME=DIRECTORY:ro")
        if not Path(path).is_dir():
            raise ConfigurationError(f"--export {text}: {path} is no directory")
        return cls(name, Path(os.path.realpath(path)), read_only)


class Exports:
    """Names to directories, for byte paths as the kernel hands them over."""

    def __init__(self, exports: Iterable[Export]) -> None:
        """Raises ConfigurationError for a name given twice, or no export at all."""
        self._roots: dict[bytes, tuple[bytes, bool]] = {}
        for export in exports:
            name = os.fsencode(export.name)
            if name in self._roots:
                raise ConfigurationError(f"--export {export.name}=...: this name is given twice")
            self._roots[name] = os.fsencode(export.path), export.read_only
        if not self._roots:
            raise ConfigurationError("nothing to show: give at least one --export NAME=DIRECTORY")

    @property
    def directories(self) -> list[bytes]:
        """The exported directories."""
        return [root for root, _ in self._roots.values()]

    def listing(self) -> list[tuple[bytes, bytes]]:
        """(name, directory) of every export: the entries of the mount point itself."""
        return [(name, root) for name, (root, _) in self._roots.items()]

    def reading(self, path: bytes) -> bytes:
        """Where ``path`` lies. Raises OSError (ENOENT; ENOTSUP for the mount point itself)."""
        return self._find(path, errno.ENOTSUP)[0]

    def writing(self, path: bytes) -> bytes:
        """As ``reading``, to change it. Raises OSError (ENOENT, EROFS)."""
        found, read_only = self._find(path, errno.EROFS)
        if read_only:
            raise OSError(errno.EROFS, "read-only export")
        return found

    def entry(self, path: bytes) -> bytes:
        """As ``writing``, to add or remove the name itself: an export can't go or come."""
        if path.count(b"/") < 2:
            raise OSError(errno.EROFS, "the mount point itself")
        return self.writing(path)

    def check_same(self, old: bytes, new: bytes) -> None:
        """For rename and link. Raises OSError (EXDEV) when the paths are of two exports."""
        if old.split(b"/", 2)[1] != new.split(b"/", 2)[1]:
            raise OSError(errno.EXDEV, "between exports")

    def _find(self, path: bytes, at_top: int) -> tuple[bytes, bool]:
        name, slash, rest = path[1:].partition(b"/")
        if not name:
            raise OSError(at_top, "the mount point itself")
        if name not in self._roots:
            raise OSError(errno.ENOENT, "no such export")
        root, read_only = self._roots[name]
        return root + slash + rest, read_only
