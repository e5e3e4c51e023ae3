"""Processes by identity: a pid alone may be somebody else's by the time it is signalled.

An identity is (pid, start time, boot): the start time in clock ticks since boot is field 22 of
/proc/PID/stat (proc(5)); the boot holds the kernel's boot id and the PID name space, because a
pid means nothing outside the name space it was read in.
"""

import os
import select
import signal
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MACHINE_STARTS_S = 10.0  # its first process runs within this time; a container's is younger


class Identity(NamedTuple):
    """One process, for as long as it lives."""

    pid: int
    start_ticks: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> "Identity":
        """Identity of a running process. Raises ProcessLookupError when there is none."""
        return cls.from_stat(_stat(pid))

    @classmethod
    def from_stat(cls, line: str, boot: str | None = None) -> "Identity":
        """From the text of /proc/PID/stat, as read in ``boot`` (default: this one)."""
        return cls(int(line.split(" ", 1)[0]), _start_ticks(line), boot or this_boot())

    def alive(self) -> bool:
        """True while this very process runs; a zombie does not run."""
        if self.boot != this_boot():
            return False
        try:
            line = _stat(self.pid)
        except ProcessLookupError:
            return False
        state = line[line.rindex(")") + 2]
        return _start_ticks(line) == self.start_ticks and state not in "ZX"


def this_boot() -> str:
    """Boot id and PID name space of this process."""
    global _boot
    if not _boot:
        _boot = f"{_boot_id()}:{os.stat('/proc/self/ns/pid').st_ino}"
    return _boot


_boot = ""


def machine() -> str:
    """The same in all containers of a machine, which may each have a boot id of their own: there
    it is when the kernel started (proc(5), btime), which machines may share that are none.
    """
    with suppress(OSError):  # other users' processes may be hidden
        ticks = _start_ticks(Path("/proc/1/stat").read_text())
        if ticks > MACHINE_STARTS_S * os.sysconf("SC_CLK_TCK"):
            told = Path("/proc/stat").read_text().split("btime ", 1)[1]
            return told.split("\n", 1)[0]
    return _boot_id()


def _boot_id() -> str:
    """random(4)"""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def is_near(pid: int) -> bool:
    """Whether a process is in this one's PID name space, not in one below it."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino == os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # it has ended, or is another user's
        return False


def await_end(child: int) -> None:
    """Return when a child has ended; it is not waited for yet, so it can be asked what it used."""
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, to a clock tick, without its children's (proc(5)).

    One that has ended can be asked until it is waited for. Raises OSError for one that is gone.
    """
    fields = _stat(pid).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def end(
    identities: Iterable[Identity], grace_s: float = 5.0, patience_s: float = 5.0
) -> list[Identity]:
    """SIGTERM, then SIGKILL after ``grace_s``; returns those alive ``patience_s`` after that.

    Signals go through pidfds opened before the identity is compared, so a recycled pid is
    never hit.
    """
    open_pids = {}
    for identity in identities:
        descriptor = _open(identity)
        if descriptor is not None:
            open_pids[descriptor] = identity
    try:
        for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, patience_s)):
            if number == signal.SIGTERM and grace_s <= 0:
                continue
            for descriptor in open_pids:
                _signal(descriptor, number)
            for descriptor in _await_exit(open_pids, wait_s):
                os.close(descriptor)
                del open_pids[descriptor]
        return list(open_pids.values())
    finally:
        for descriptor in open_pids:
            os.close(descriptor)


def members(
    marker: str,
    sessions: Container[int] = (),
    directories: Sequence[str] = (),
    but_not: Container[int] = (),
) -> Iterator[Identity]:
    """Processes of this user that belong to a cell.

    They carry ``marker`` (``NAME=value``) in their environment, or live in one of the
    ``sessions``, or work (cwd) below one of the ``directories``. Left out are this process and
    the sessions in ``but_not``.
    """
    needle, me, uid = marker.encode() + b"\0", os.getpid(), os.getuid()
    below = tuple(directory.rstrip("/") + "/" for directory in directories)
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == me:
            continue
        try:
            if os.stat(f"/proc/{entry}").st_uid != uid:
                continue
            line = _stat(entry)
            after = line[line.rindex(")") + 2 :].split(" ", 4)
            session = int(after[3])
            kernel_thread = after[1] == "2"
            if after[0] in "ZX" or kernel_thread or session in but_not:
                continue
            if session in sessions or _carries(entry, needle) or _works_in(entry, below):
                yield Identity.from_stat(line)
        except (ProcessLookupError, FileNotFoundError, PermissionError):
            continue  # it ended meanwhile, or is another user's


def _carries(pid: str, needle: bytes) -> bool:
    try:
        return needle in _read(f"/proc/{pid}/environ") + b"\0"
    except OSError:
        return False


def _works_in(pid: str, below: tuple[str, ...]) -> bool:
    try:
        return bool(below) and (os.readlink(f"/proc/{pid}/cwd") + "/").startswith(below)
    except OSError:
        return False


def _stat(pid: int | str) -> str:
    try:
        return _read(f"/proc/{pid}/stat").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"no process {pid}") from error


def _read(path: str) -> bytes:
    """A whole file of /proc; hundreds are read at a cell's end, and open() costs twice as much."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = chunk = os.read(descriptor, 1 << 16)
        while len(chunk) == 1 << 16:
            chunk = os.read(descriptor, 1 << 16)
            text += chunk
        return text
    finally:
        os.close(descriptor)


def _start_ticks(line: str) -> int:
    return int(line[line.rindex(")") + 2 :].split(" ", 20)[19])


def _open(identity: Identity) -> int | None:
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    if identity.alive():
        return descriptor
    os.close(descriptor)
    return None


def _signal(descriptor: int, number: int) -> None:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has ended, or is root's by now (sudo): then it is told to be alive


def _await_exit(descriptors: Iterable[int], wait_s: float) -> list[int]:
    waiting, ended = set(descriptors), []
    poll = select.poll()
    for descriptor in waiting:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + wait_s
    while waiting and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            poll.unregister(descriptor)
            waiting.discard(descriptor)
            ended.append(descriptor)
    return ended
