"""The nodes of a cell, seen from its first host: one node.py on each, over one connection.

Commands get to other hosts as burstlab's own do: through the cell's launcher (burstlab.launch).
burstlab.agents is not for them: agents are the cell's, run burstlab's own actions and hold a lease
on each host, while a workload is not burstlab, carries the cell's mark, by which that lease ends it
whatever became of node.py, and can be traced.
"""

import json
import os
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from failure import Failed
from parameters import Place

from burstlab.launch import HOST, launcher
from burstlab.supervision import ended_how

NODE = Path(__file__).with_name("node.py")
START_S = 300  # Java's first start on each host, from a shared file system
END_S = 60


class Nodes:
    """Started by ``start``, which returns when every NodeManager runs."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._failures: list[str] = []
        self._noise: list[str] = []
        self._left: list[str] = []
        self._channels: list[Channel] = []

    def start(self, order: dict[str, Any]) -> None:
        """Raises Failed for the first node that can't be started, or is silent."""
        place = self._place
        # On other hosts a cell's processes are known by both their names (burstlab.agent).
        mark = place.id if place.alone else f"{place.id}."
        traced = shlex.split(os.environ.get("BURSTLAB_TRACE", ""))
        base = [*traced, sys.executable, str(NODE), mark, ",".join(place.hosts)]
        if place.alone:
            self._channels = [Channel([*base, name]) for name in place.names]
        else:
            own = [HOST] if place.launch == "ssh" else []
            start = launcher(place.launch)
            scratch = place.local / "launch"
            scratch.mkdir()
            argv = start(place.hosts, [*base, *own], place.launch_options, scratch)
            self._channels = [Channel(argv)]
        for channel in self._channels:
            channel.send(json.dumps(order).encode() + b"\n")
        deadline = time.monotonic() + START_S
        while missing := self._missing(self._started):
            self.check()
            if time.monotonic() > deadline:
                raise Failed(f"{missing[0]}: no NodeManager within {START_S} s{self._words()}")
            self.listen(1.0)

    def check(self) -> None:
        """Raises Failed when a NodeManager has ended, or a connection has."""
        self.listen(0)
        if self._failures:
            raise Failed(self._failures[0])
        if self._missing(self._ended) and any(channel.ended for channel in self._channels):
            raise Failed(f"{self._missing(self._ended)[0]}: its connection is lost{self._words()}")

    def listen(self, wait_s: float) -> None:
        """Take in what the nodes tell, for ``wait_s`` at most."""
        open_ones = [channel for channel in self._channels if not channel.ended]
        ready, _, _ = select.select(open_ones, [], [], wait_s) if open_ones else ([], [], [])
        for channel in ready:
            for line in channel.lines():
                self._take(line)

    def end(self) -> list[str]:
        """End all NodeManagers and their containers; what could not be ended."""
        for channel in self._channels:
            channel.close()
        deadline = time.monotonic() + END_S
        while any(not channel.ended for channel in self._channels):
            if time.monotonic() > deadline:
                break
            self.listen(1.0)
        for channel in self._channels:
            channel.finish()
        expected = self._missing(self._ended) if self._channels else []
        silent = [f"{name}: did not end in {END_S} s" for name in expected]
        return [*self._left, *silent]

    def _take(self, line: bytes) -> None:
        try:
            told = json.loads(line)
            if "gone" in told:  # the launcher's own words
                how = ended_how(told["status"], of_shell=True)
                self._failures.append(f"{told['host']}: {told['gone']} ended with {how}")
                return
            name = told["node"]
        except (ValueError, TypeError, KeyError):  # what a login prints
            self._noise.append(line.decode(errors="replace").strip())
            return
        if "failed" in told:
            self._failures.append(f"{name}: {told['failed']}")
        if "started" in told:
            self._started.add(name)
        if "ended" in told:
            self._ended.add(name)
            self._left += [f"{name}: {what}" for what in told["left"]]

    def _missing(self, names: set[str]) -> list[str]:
        return [name for name in self._place.names if name not in names]

    def _words(self) -> str:
        return f": {self._noise[-1]}" if self._noise else ""


class Channel:
    """One process with lines from and to it."""

    def __init__(self, argv: list[str]) -> None:
        self.ended = False
        self._pending = b""
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin and self._process.stdout
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def fileno(self) -> int:
        """To wait for its next line, or its end."""
        return self._stdout.fileno()

    def send(self, line: bytes) -> None:
        """Who has gone meanwhile is noticed by the end of what it tells."""
        with suppress(BrokenPipeError):
            self._stdin.write(line)
            self._stdin.flush()

    def lines(self) -> Iterator[bytes]:
        """What has come; there is something, or an end."""
        chunk = os.read(self.fileno(), 1 << 16)
        self.ended = not chunk
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        yield from lines

    def close(self) -> None:
        """Tell it to end."""
        with suppress(BrokenPipeError):
            self._stdin.close()

    def finish(self) -> None:
        """After its end, or in place of it."""
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()
