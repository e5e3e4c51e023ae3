"""One set-up at a time in a checkout, and how its tools are run."""

import errno
import fcntl
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.setup.failure import InTheWay

LONGEST_WAIT_S = 1800  # a whole set-up on a slow network

_lock: list[int] = []


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Hold the lock of a checkout, waiting for another set-up to end.

    Raises InTheWay when the checkout can't be written or the other one never ends.
    """
    descriptor = _open(directory)
    _wait_for(descriptor)
    _lock.append(descriptor)
    try:
        yield
    finally:
        _lock.remove(descriptor)
        os.close(descriptor)


def run(
    argv: Sequence[str | Path],
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    keep_lock: bool = True,
) -> tuple[bool, str]:
    """Run one tool with its output appended to the log; returns whether it succeeded, and that.

    With ``keep_lock`` the tool holds the lock too: should set-up be killed, the next one waits
    until the tool has ended. Not for tools that may leave a daemon behind.
    """
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ {' '.join(map(str, argv))}\n")
        stream.flush()
        start = stream.tell()
        done = subprocess.run(
            [os.fspath(word) for word in argv],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
            pass_fds=_lock if keep_lock else (),
        )
    with log.open("rb") as written:
        written.seek(start)
        return done.returncode == 0, written.read().decode(errors="replace")


def last_lines(output: str, count: int = 8) -> str:
    """The end of what a tool printed, indented, for a message."""
    return "\n".join(f"    {line}" for line in output.rstrip().splitlines()[-count:])


def _open(directory: Path) -> int:
    """The lock file. Who can't write it can still find that nothing is to be done."""
    lock = directory / "setup.lock"
    try:
        directory.mkdir(exist_ok=True)
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        if lock.exists():
            return os.open(lock, os.O_RDONLY)
        raise InTheWay(
            f"{error.filename} can't be written ({error.strerror}): make a clone of your own"
        ) from error


def _wait_for(descriptor: int) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_S
    told = False
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                raise
            print("setup: this file system has no locks: don't run two at once", flush=True)
            return None
        if not told:
            print("setup: waiting for another make setup of this checkout", flush=True)
            told = True
        if time.monotonic() > deadline:
            raise InTheWay(f"another make setup has run for {LONGEST_WAIT_S} s: end it first")
        time.sleep(0.2)
