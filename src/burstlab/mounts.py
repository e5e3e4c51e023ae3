"""Mount points: which are there, what they are, and how they go."""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple


class Mount(NamedTuple):
    """One line of /proc/self/mounts (fstab(5))."""

    source: str
    path: str
    type: str
    options: str


def mounts() -> list[Mount]:
    """Every mount of this mount name space, in the order they were made."""
    lines = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
    return [Mount(*(unescape(field) for field in line.split(" ")[:4])) for line in lines]


def mounted_at(path: str | Path) -> Mount | None:
    """The topmost mount whose mount point is exactly ``path``."""
    return next((m for m in reversed(mounts()) if m.path == os.path.abspath(path)), None)


def mount_of(path: str | Path) -> Mount:
    """The mount that holds ``path`` (its text alone decides; nothing there is touched)."""
    wanted = os.path.abspath(path)
    holding = [m for m in mounts() if m.path == "/" or f"{wanted}/".startswith(f"{m.path}/")]
    return max(reversed(holding), key=lambda m: len(m.path))


def mounts_below(path: str | Path) -> list[str]:
    """Mount points at or below ``path``."""
    top = os.path.abspath(path)
    return [m.path for m in mounts() if m.path == top or m.path.startswith(f"{top}/")]


def unmount(path: str | Path) -> str:
    """Unmount whatever is at ``path``, busy or dead; returns what went wrong, or nothing.

    A lazy unmount is the last resort: it detaches at once and frees when the last user ends.
    """
    commands = [["umount"], ["umount", "-l"]] if os.getuid() == 0 else []
    commands += [["fusermount3", "-u"], ["fusermount3", "-u", "-z"]]
    commands += [["fusermount", "-u"], ["fusermount", "-u", "-z"]]
    said = ""
    while mounted_at(path):
        for command in commands:
            try:
                done = subprocess.run(
                    [*command, os.fspath(path)], capture_output=True, text=True, timeout=10
                )
            except (FileNotFoundError, subprocess.TimeoutExpired) as error:
                said = said or str(error)
                continue
            said = done.stderr.strip() or said
            if done.returncode == 0:
                break
        else:
            return f"{path} can't be unmounted: {said}"
    return ""


def unescape(field: str) -> str:
    r"""A field of the kernel's tables of mounts as it is: a blank is written ``\040`` there."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
