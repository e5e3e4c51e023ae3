"""The tracer: runs a command under strace and counts while it runs, on one host of a cell.

It ends as the command does, with its status or by its signal. What the command leaves running is
told to end with it: strace would wait for it, and who a tracer lets go of can't read any more.
"""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from burstlab.tracing.counting import Counts
from burstlab.tracing.strace import command as strace
from burstlab.tracing.strace import events

GRACE_S = 5.0
PIPE_BYTES = 1 << 20  # what an ordinary user may have (/proc/sys/fs/pipe-max-size)


def main(arguments: list[str]) -> int:
    """``arguments``: the directory, PLACE=PATH ..., --, the command and its arguments."""
    at = arguments.index("--")
    directory, *places = arguments[:at]
    command = arguments[at + 1 :]
    if tracer_of("self"):  # who is traced can't trace, and is counted already
        os.execvp(command[0], command)
    part = Path(directory, f"{os.uname().nodename}.{os.getpid()}.json")
    part.parent.mkdir(exist_ok=True)
    part.touch()  # one that stays empty tells that its tracer was ended
    counts = Counts(dict(place.split("=", 1) for place in places))
    returncode = run(command, counts)
    partial = part.with_suffix(".partial")
    partial.write_text(json.dumps({"host": os.uname().nodename, **counts.result()}))
    partial.rename(part)
    return as_it_ended(returncode)


def run(command: list[str], counts: Counts) -> int:
    """Return code of ``command`` as subprocess gives it; its transfers are in ``counts``."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # meant for the command, which gets its own
    reader, writer = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    # By this name strace opens the pipe for itself; one inherited would stay open in the command.
    child = subprocess.Popen(strace(f"/proc/{os.getpid()}/fd/{writer}", command))
    threading.Thread(target=_close_after, args=(child, writer), daemon=True).start()
    with os.fdopen(reader, encoding="latin-1", newline="\n") as lines:
        for event in events(_until_alone(lines, child.pid, counts)):
            counts.add(event)
    return child.wait()


def tracer_of(pid: int | str) -> int:
    """Process id of who traces a process, 0 for nobody (proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    return int(status.partition("TracerPid:")[2].split()[0])


def as_it_ended(returncode: int) -> int:
    """An exit status, or this process ended by the signal that ended the command."""
    if returncode < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -returncode not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -returncode)
    return returncode


def _close_after(child: subprocess.Popen[bytes], writer: int) -> None:
    child.wait()
    os.close(writer)


def _until_alone(lines: TextIO, tracer: int, counts: Counts) -> Iterator[str]:
    """All lines; as soon as the command has ended, its survivors are told to end."""
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
