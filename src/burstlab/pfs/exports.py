"""The directories that an emulated parallel file system shows."""

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


def check_names(exports: Iterable[Export]) -> None:
    """Raises ConfigurationError for a name given twice, or no export at all."""
    names = [export.name for export in exports]
    if not names:
        raise ConfigurationError("nothing to show: give at least one --export NAME=DIRECTORY")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigurationError(f"--export {twice[0]}=...: this name is given twice")
