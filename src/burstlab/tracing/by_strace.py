"""A command run under strace."""

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from burstlab.process import await_end, cpu_seconds
from burstlab.tracing.counting import Counts, Places
from burstlab.tracing.strace import command as strace
from burstlab.tracing.strace import events

GRACE_S = 5.0
PIPE_BYTES = 1 << 20  # what an ordinary user may have (/proc/sys/fs/pipe-max-size)


def run(command: list[str], places: Places) -> tuple[int, dict[str, Any]]:
    """Return code of ``command`` as subprocess gives it, and what was counted."""
    counts = Counts(places)
    reader, writer = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    # By this name strace opens the pipe for itself; one inherited would stay open in the command.
    child = subprocess.Popen(strace(f"/proc/{os.getpid()}/fd/{writer}", command))
    threading.Thread(target=_close_after, args=(child, writer), daemon=True).start()
    with os.fdopen(reader, encoding="latin-1", newline="\n") as lines:
        for event in events(_until_alone(lines, child.pid, counts)):
            counts.add(event)
    await_end(child.pid)
    used = {"tracer_cpu_s": cpu_seconds(child.pid)}
    return child.wait(), counts.result() | used


def tracer_of(pid: int | str) -> int:
    """Process id of who traces a process, 0 for nobody (proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    return int(status.partition("TracerPid:")[2].split()[0])


def _close_after(child: subprocess.Popen[bytes], writer: int) -> None:
    await_end(child.pid)
    os.close(writer)


def _until_alone(lines: TextIO, tracer: int, counts: Counts) -> Iterator[str]:
    """All lines; as soon as the command has ended, its survivors are told to end: strace would
    wait for them, and who a tracer lets go of can't read any more."""
    told = False
    for line in lines:
        yield line
        if not told and "+++" in line and counts.ended(counts.first):
            told = True
            threading.Thread(target=_end_survivors, args=(tracer,), daemon=True).start()


def _end_survivors(tracer: int) -> None:
    """A process that strace traces is one of ours for as long as it does."""
    deadline = time.monotonic() + GRACE_S
    number = signal.SIGTERM
    while True:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                _tell(int(entry.name), tracer, number)
        time.sleep(0.05)
        if time.monotonic() > deadline:
            number = signal.SIGKILL


def _tell(pid: int, tracer: int, number: int) -> None:
    with suppress(OSError, ValueError, IndexError):  # it has just ended
        descriptor = os.pidfd_open(pid)
        try:
            if tracer_of(pid) == tracer:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
