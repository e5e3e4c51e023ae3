"""Accesses to a mount that may hang: each by a process of its own, with a time limit."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from burstlab.errors import StorageError

ANSWER_S = 60.0
SYNC_S = 600.0


def ask(command: Sequence[str | Path], limit_s: float = ANSWER_S) -> str:
    """What a command answers whose last word is a path. Raises StorageError."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, cwd="/")
    except subprocess.TimeoutExpired:
        raise StorageError(f"{command[-1]} did not answer within {limit_s:.0f} s") from None
    if done.returncode:
        raise StorageError(done.stderr.strip() or f"{command[0]} failed on {command[-1]}")
    return done.stdout


def leave_probe(directory: str, host: str) -> None:
    """Write a file that ``host`` is to be known by."""
    ask(["sh", "-c", 'printf %s "$0" >"$1"', host, _probe(directory, host)])


def take_probe(directory: str, host: str) -> None:
    """Read what ``host`` wrote, and remove it."""
    read = ask(["sh", "-c", 'cat -- "$0" && rm -- "$0"', _probe(directory, host)])
    if read != host:
        raise StorageError(f"{directory}: what {host} wrote is read as {read!r}")


def following(hosts: Sequence[str], host: str) -> str:
    """The host whose probe ``host`` takes: each is taken by another, where there is another."""
    return hosts[(hosts.index(host) + 1) % len(hosts)]


def synchronize(directory: str) -> None:
    """Everything written on that file system is on its media (syncfs(2))."""
    ask(["sync", "-f", "--", directory], SYNC_S)


def _probe(directory: str, host: str) -> str:
    return f"{directory}/.probe-{host}"
