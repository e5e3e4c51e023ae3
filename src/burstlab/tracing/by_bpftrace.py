"""A command run as the child of a bpftrace, which begins when all is set to trace it."""

import os
import shlex
import signal
import subprocess
import sys
from typing import Any

from burstlab.errors import BurstlabError
from burstlab.process import await_end, cpu_seconds
from burstlab.tracing import bpf
from burstlab.tracing.counting import Places


def run(command: list[str], places: Places) -> tuple[int, dict[str, Any]]:
    """Return code of ``command`` as subprocess gives it, and what was counted.

    bpftrace tells nobody how its child ended, and splits the words of it at spaces: so the child is
    a shell that reads a script, and writes the status down.
    """
    here = f"/proc/{os.getpid()}/fd"
    reader, writer = os.pipe()
    script = _in_memory("command", f"{shlex.join(command)}\necho $? >{here}/{writer}\n")
    program, output = _in_memory("program", bpf.program()), _in_memory("output", "")
    words = bpf.command(f"{here}/{output}", f"{here}/{program}", f"/bin/sh {here}/{script}")
    child = subprocess.Popen(words, env={**os.environ, **bpf.ENVIRONMENT})
    await_end(child.pid)
    used = {"tracer_cpu_s": cpu_seconds(child.pid)}
    child.wait()
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read().strip()
    os.lseek(output, 0, os.SEEK_SET)
    with os.fdopen(output, encoding="utf-8", errors="replace") as lines:
        found = bpf.result(lines, places) | used
    if not told:
        print(f"bpftrace ended with {child.returncode} before the command did", file=sys.stderr)
        return BurstlabError.exit_status, {**found, "whole": False}
    status = int(told)
    return (128 - status if status - 128 in signal.valid_signals() else status), found


def _in_memory(name: str, text: str) -> int:
    """Descriptor of a file that is on no disk."""
    descriptor = os.memfd_create(name)
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
