"""The state of the page cache before the workload starts, enforced and then looked at.

Unprivileged, file by file: posix_fadvise(DONTNEED) makes a file cold once its pages are written,
reading it makes it warm. A site's own command (``dropcaches 3`` on Cygnus and Pegasus) goes
before, where there is one. The caches of a parallel file system's servers are out of a user's
reach; a record says what was done, no more.
"""

import errno
import os
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from burstlab.errors import BurstlabError
from burstlab.nodes import Node
from burstlab.supervision import last_words

Item = TypeVar("Item")
STATES = ("cold", "warm", "as-is")
LOOKED_AT = 1000  # files whose residency is asked of the kernel, at most
FEW = 32  # files that are not worth threads, and that one fincore looks at
IN_FLIGHT = 32  # files opened at once: on a parallel file system each open is latency


def enforce(node: Node, state: str, data: str, drop_caches: str) -> Mapping[str, Any]:
    """Node action: bring ``data`` and the node's own files of the cell into ``state``.

    Returns state, method, and of the files looked at their bytes and the resident ones.
    """
    return bring([node.host.local_dir, *([Path(data)] if data else [])], state, drop_caches)


def bring(roots: Iterable[Path], state: str, drop_caches: str = "") -> Mapping[str, Any]:
    """Bring the files below ``roots`` into ``state``; see ``enforce``."""
    files = [path for root in roots for path in _files(root)]
    method = "none"
    if state == "cold":
        method = "posix_fadvise(DONTNEED) per file"
        if drop_caches:
            _drop(drop_caches)
            method = f"{drop_caches}; {method}"
        _each(_evict, files)
    elif state == "warm":
        method = "every file read once"
        _each(_read, files)
    looked_at = files[:LOOKED_AT]
    return {
        "state": state,
        "method": method,
        "files": len(looked_at),
        "bytes": sum(path.stat().st_size for path in looked_at),
        "resident_bytes": resident_bytes(looked_at),
    }


def _drop(command: str) -> None:
    """The site's own command. Raises BurstlabError with what it said."""
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=300)
    except OSError as error:
        raise BurstlabError(f"--drop-caches {command}: {error.strerror}") from error
    if done.returncode != 0:
        said = last_words(done.stderr)
        raise BurstlabError(f"--drop-caches {command}: exit status {done.returncode}: {said}")


def issues(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Validity issues of what ``enforce`` returned on each host."""
    said = []
    for host, state in found.items():
        resident, size = state["resident_bytes"], state["bytes"]
        if resident is None:
            said.append(f"cache on {host} not looked at: fincore (util-linux) is missing")
        elif state["state"] == "cold" and resident > 0.05 * size:
            said.append(f"cache on {host} is not cold: {resident} of {size} bytes are resident")
        elif state["state"] == "warm" and resident < 0.95 * size:
            said.append(f"cache on {host} is not warm: {resident} of {size} bytes are resident")
    return said


def _files(root: Path) -> Iterator[Path]:
    """Regular files below ``root``, on its own file system: a mount below is somebody's root."""
    device = root.stat().st_dev
    for where, directories, names in os.walk(root):
        directories[:] = [d for d in directories if Path(where, d).stat().st_dev == device]
        for name in names:
            path = Path(where, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _evict(path: Path) -> None:
    with path.open("rb") as opened:
        try:
            os.fsync(opened.fileno())  # dirty pages stay
        except OSError as error:
            # gfarm2fs syncs only what is open for writing, and wrote through when it was closed
            if error.errno != errno.EBADF:
                raise
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _each(action: Callable[[Item], None], items: list[Item]) -> None:
    if len(items) > FEW:
        return _at_once(action, items)
    for item in items:
        action(item)


def _at_once(action: Callable[[Item], None], items: list[Item]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(IN_FLIGHT) as threads:
        for _ in threads.map(action, items):
            pass


def _read(path: Path) -> None:
    with path.open("rb", buffering=0) as opened:
        while opened.read(1 << 20):
            pass


def resident_bytes(files: list[Path]) -> int | None:
    """Bytes of ``files`` in the page cache by fincore(1); None where it is missing."""
    if not files:
        return 0
    groups = [files[first : first + FEW] for first in range(0, len(files), FEW)]
    if len(groups) == 1:
        return _resident(files)
    found: list[int | None] = []
    _at_once(lambda group: found.append(_resident(group)), groups)
    return None if None in found else sum(size or 0 for size in found)


def _resident(files: list[Path]) -> int | None:
    command = ["fincore", "--bytes", "--noheadings", "--output", "RES", *map(str, files)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except FileNotFoundError:
        return None
    return sum(int(word) for word in done.stdout.split())
