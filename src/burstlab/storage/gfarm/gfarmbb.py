"""gfarmbb(1), the command of Gfarm's own authors, in the place of burstlab's launcher.

gfarmbb runs its steps on all hosts through a command that it takes for an mpirun (-mpi). Here
that command hands each step to the cell, which has an agent with a lease on every host already:
so no other way to the hosts is needed, and what gfarmbb starts is the leases' to clean.
"""

import os
import re
import select
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burstlab.errors import NodeError, StorageError
from burstlab.storage.gfarm.gfarmbb_node import GFMD_PORT, STATUSES, STEPS
from burstlab.storage.interface import Context
from burstlab.supervision import last_words

_NODE = "burstlab.storage.gfarm.gfarmbb_node"
LIMIT_S = 300.0  # for all steps of a start, or of a stop
_PLAIN = re.compile(r"[\w./@+:-]+")  # gfarmbb quotes no path


class Gfarmbb:
    """One Gfarm/BB, from its start to its stop."""

    def __init__(self, context: Context, mount: Path) -> None:
        self._context = context
        self._head = context.hosts[0]  # this host
        self._directory = self._head.local_dir / "gfarm"
        self._scratch = str(self._directory / "bb")
        self._where = {"configuration": str(context.pfs.work / "gfarmbb"), "mount": str(mount)}
        self._started = False

    def unavailable(self) -> str | None:
        """One sentence why gfarmbb can't serve this cell here, or None."""
        if "mmap" in self._context.needs:
            return "gfarmbb mounts with direct_io, which refuses the shared mappings needed"
        for path in (self._scratch, *self._where.values()):
            if not _PLAIN.fullmatch(path):
                return f"gfarmbb does not quote paths, and {path} has more than plain characters"
        found = self._context.nodes.call(f"{_NODE}:lacking")
        return next((f"{host}: {why}" for host, why in found.items() if why), None)

    def start(self, key_lifetime_s: int) -> tuple[dict[str, Any], Mapping[str, Mapping[str, str]]]:
        """Where gfmd is, and what each host has. Raises StorageError or NodeError."""
        call = self._context.nodes.call
        call(f"{_NODE}:prepare", mount=self._where["mount"])
        self._started = True
        self._run("start", "-p", str(key_lifetime_s))
        hosts = call(f"{_NODE}:adopt", head=self._head.name, scratch=self._scratch, **self._where)
        return {"server": self._head.name, "port": GFMD_PORT}, hosts

    def stop(self) -> None:
        """Its own stop; what that leaves is the leases'. Raises StorageError or NodeError."""
        if self._started:
            self._started = False
            self._run("stop")

    def _run(self, mode: str, *options: str) -> None:
        """Run gfarmbb, and on every host what it says; the first host that failed is told."""
        words = ["-scr", self._scratch, "-conf", self._where["configuration"], *options]
        words += ["-m", self._where["mount"]]
        call, directory = self._context.nodes.call, self._directory / mode
        call(f"{_NODE}:run", head=self._head.name, mode=mode, words=words, **self._where)
        steps = os.open(directory / STEPS, os.O_RDWR)
        statuses = os.open(directory / STATUSES, os.O_RDWR)
        failure, deadline = None, time.monotonic() + LIMIT_S
        try:
            while (step := _read(steps, deadline)).startswith("run "):
                try:
                    call(f"{_NODE}:run_script", script=step.removeprefix("run "), **self._where)
                except NodeError as error:
                    failure = failure or error
                os.write(statuses, b"1\n" if failure else b"0\n")
        finally:
            os.close(steps)
            os.close(statuses)
        if failure:
            raise failure
        if step != "end 0":
            said = last_words((directory / "gfarmbb.said").read_text(errors="replace"))
            raise StorageError(f"gfarmbb {mode}: {step.replace('end', 'exit status')}: {said}")


def _read(pipe: int, deadline: float) -> str:
    """What gfarmbb says next: a step, or its end. Raises StorageError."""
    text = b""
    while not text.endswith(b"\0"):
        if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise StorageError(f"gfarmbb: not within {LIMIT_S:g} s")
        text += os.read(pipe, 1 << 16)
    return os.fsdecode(text[:-1])
