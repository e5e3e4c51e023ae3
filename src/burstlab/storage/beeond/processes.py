"""The processes of a session on this host: root's, and found by the paths they were given.

A daemon's pid file names a pid that may be another process's by now, and a daemon whose start
was cut short is in no status file; but each has the session's own paths in its arguments. Whoever
else names them, a user who reads a log, say, is not root.
"""

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from burstlab import process
from burstlab.process import Identity
from burstlab.storage.beeond.session import Session

COMMAND_S = 60.0  # for a umount, a kill, a removal
GRACE_S = 10.0  # what beeond itself gives a daemon


def processes(session: Session) -> dict[Identity, str]:
    """Root's that name one of the session's own paths, with their arguments (NUL between them).

    Its daemons, the shells that are just starting one, a ``beeond start`` or ``stop``.
    """
    found = {}
    for one in _all():
        proc = Path(f"/proc/{one.pid}")
        try:
            words = proc.joinpath("cmdline").read_bytes().decode(errors="replace")
            named = any(path in words for path in session.paths) and proc.stat().st_uid == 0
        except OSError:
            continue  # it ended
        if named and one.pid != os.getpid():
            found[one] = words
    return found


def calls(session: Session) -> list[Identity]:
    """``beeond start`` and ``stop`` of this session, what runs them (sudo), what they have called.

    What they have called is what is in their sessions (setsid(2)); sudo may give them one.
    """
    called = processes(session).items()
    found = [one for one, words in called if {"start", "stop"} & {*words.split("\0")}]
    sessions = {_session(one) for one in found} - {0, os.getsid(0)}
    return [one for one in _all() if one in found or _session(one) in sessions]


def end(found: Iterable[Identity], prefix: Sequence[str], grace_s: float = GRACE_S) -> None:
    """SIGTERM, then SIGKILL, as root if need be."""
    if not prefix:
        process.end(found, grace_s)
        return
    found = [*found]
    for number, wait_s in (("-TERM", grace_s), ("-KILL", 5.0)):
        living = [one for one in found if one.alive()]
        if living:
            as_root(prefix, ["kill", number, *(str(one.pid) for one in living)])
        deadline = time.monotonic() + wait_s
        while any(one.alive() for one in living) and time.monotonic() < deadline:
            time.sleep(0.02)


def as_root(prefix: Sequence[str], command: Sequence[str]) -> str:
    """Run a command; what it says when it fails, or nothing."""
    try:
        done = subprocess.run(
            [*prefix, *command], capture_output=True, text=True, timeout=COMMAND_S, cwd="/"
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end within {COMMAND_S:.0f} s"
    if done.returncode == 0:
        return ""
    return done.stderr.strip() or f"{command[0]} ended with exit status {done.returncode}"


def pid_in(path: str) -> int:
    """The pid in a pid file, or 0."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return 0


def _all() -> list[Identity]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (one := Identity.of(int(entry.name))).alive():
                found.append(one)
        except ProcessLookupError:
            continue
    return found


def _session(one: Identity) -> int:
    try:
        return os.getsid(one.pid)
    except ProcessLookupError:
        return 0
