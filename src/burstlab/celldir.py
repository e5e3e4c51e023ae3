"""The directory of a cell: one that can be written, and one cell's alone, on whatever hosts.

Two cells in one directory would report each other's numbers. So the file `running.json` in it
names the cell, its host and its process. It is made with O_EXCL, which is one cell's alone on
every shared file system, and touched every few seconds: who finds it asks whether that process
lives where it can, on the same host, and elsewhere watches whether the file is still touched. So
no locks are wanted, which shared file systems have or not, and no clocks that agree.
"""

import _thread
import errno
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from burstlab.errors import BurstlabError, ConfigurationError
from burstlab.process import Identity, this_boot

NAME = "running.json"
BEAT_S = 5.0
SILENT_S = 4 * BEAT_S  # a parallel file system may take its time


class CellDirectory:
    """Held from ``take`` to ``release``."""

    def __init__(self, path: Path, cell: str) -> None:
        self.path = path
        self._held = path / NAME
        self._cell = cell
        self._text = ""
        self._over = _thread.allocate_lock()

    def take(self) -> None:
        """Make the directory ours.

        Raises ConfigurationError when it can't be written or a cell runs in it. Whether one on
        another host still does takes up to ``SILENT_S`` to see.
        """
        holder = [*Identity.of(os.getpid())]
        about = {"cell": self._cell, "host": os.uname().nodename, "holder": holder}
        self._text = json.dumps({**about, "since": time.strftime("%F %T%z")}) + "\n"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            while (descriptor := _create(self._held)) is None:
                self._clear()
            os.write(descriptor, self._text.encode())
        except OSError as error:
            why = os.strerror(error.errno or errno.EIO)
            raise ConfigurationError(f"--cell-dir {self.path}: {why}") from error
        self._over.acquire()
        _thread.start_new_thread(self._beat, (descriptor,))

    def require_ours(self) -> None:
        """Raises BurstlabError when another cell has taken it, for this host was silent."""
        found = _read(self._held)
        if found is None or found[0] != self._text:
            other = f"cell {_about(found[0]).get('cell')}" if found else "somebody"
            raise BurstlabError(
                f"--cell-dir {self.path}: {other} took it while this host could not write to it: "
                "no record is written"
            )

    def release(self) -> None:
        """Leave it to the next cell."""
        self._over.release()
        with suppress(OSError, BurstlabError):
            self.require_ours()
            self._held.unlink()

    def _beat(self, descriptor: int) -> None:
        """A thread, for a file system that stops answering must not stop us."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while not self._over.acquire(timeout=BEAT_S):
            with suppress(OSError):
                os.utime(descriptor)
        os.close(descriptor)

    def _clear(self) -> None:
        """Remove what a dead cell left. Raises ConfigurationError when it lives."""
        if (found := _read(self._held)) is None:
            return
        text, touched_ns = found
        about = _about(text)
        alive = _is_alive(about)
        if alive is None:
            alive = self._is_touched(touched_ns)
        if alive:
            raise ConfigurationError(
                f"--cell-dir {self.path}: cell {about.get('cell')} runs in it on "
                f"{about.get('host')}, since {about.get('since')}: wait for its end or choose "
                "another directory"
            )
        aside = self._held.with_name(f".{NAME}.{self._cell}")
        with suppress(FileNotFoundError):
            self._held.rename(aside)
            if aside.read_text() == text:
                aside.unlink()
            else:  # another cell was as quick, and it is its own by now
                aside.rename(self._held)

    def _is_touched(self, touched_ns: int) -> bool:
        """Whether somebody touches the file, watched for ``SILENT_S`` at most."""
        print(f"{self._held}: a cell of another host? It tells within {SILENT_S:.0f} s",
              file=sys.stderr)  # fmt: skip
        deadline = time.monotonic() + SILENT_S
        while time.monotonic() < deadline:
            time.sleep(0.2)
            found = _read(self._held)
            if found is None or found[1] != touched_ns:
                return found is not None
        return False


def _create(path: Path) -> int | None:
    """A descriptor of the new file; None where there is one already."""
    try:
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return None


def _read(path: Path) -> tuple[str, int] | None:
    """Content and time of change [ns]; opened anew, for NFS looks at its server only then."""
    try:
        with path.open() as opened:
            return opened.read(), os.fstat(opened.fileno()).st_mtime_ns
    except FileNotFoundError:
        return None


def _about(text: str) -> dict[str, Any]:
    """What the file tells; nothing while it is being written."""
    try:
        about: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return about


def _is_alive(about: dict[str, Any]) -> bool | None:
    """Whether the process that holds a directory runs; None where it can't be seen from here."""
    if about.get("host") != os.uname().nodename or about["holder"][2] != this_boot():
        return None
    return Identity(*about["holder"]).alive()
