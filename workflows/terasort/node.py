"""One NodeManager and its containers, on one host of the cell: `node.py MARK HOSTS [NAME]`.

Reads one line of JSON from stdin (what cluster.py sends, the same to all hosts), starts the
NodeManager and watches it. Whatever it has to tell is a line of JSON on stdout that names its
node. When stdin ends, nobody wants the NodeManager any more: it is ended, and then all it started,
for a container outlives a killed NodeManager. They are known by TERASORT_NODE in their environment.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import configuration
from configuration import NODE_MARK
from failure import Failed, death
from installation import find_java

from burstlab import process
from burstlab.allocation import own_name
from burstlab.lease import MARKER
from burstlab.storage.gfarm.network import misnamed

CLASS = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
GRACE_S = 30.0  # an orderly end was seen to take 14 s on busy cores


class Told(Exception):
    """By a signal: end at once."""


class Node:
    """The NodeManager called ``name``."""

    def __init__(self, name: str, order: Mapping[str, Any]) -> None:
        """Raises Failed when it can't be started here."""
        if not order["alone"] and (why := misnamed(name)):
            raise Failed(why)
        java = find_java(order["java_home"])
        mark = f"{os.environ[MARKER]}/{name}"
        self._mark = f"{NODE_MARK}={mark}"
        directory = Path(order["local"], "terasort", name)
        directory.with_name("tmp").mkdir(parents=True, exist_ok=True)
        configuration.write(directory / "conf", order["files"])
        spill = Path(order["spill"], name) if order["spill"] else directory / "spill"
        spill.mkdir(parents=True)
        self._directories = [str(spill), str(directory)]
        self._log = directory / "nodemanager.log"
        host = "localhost" if order["alone"] else name
        settings = {
            "yarn.nodemanager.hostname": host,
            "yarn.nodemanager.address": f"{host}:0",
            "yarn.nodemanager.localizer.address": f"{host}:0",
            "yarn.nodemanager.local-dirs": str(spill),
            "yarn.nodemanager.log-dirs": str(directory / "logs"),
        }
        argv = [java.program, *order["options"], "-cp", f"{directory}/conf:{order['classpath']}"]
        argv += [CLASS, *(word for item in settings.items() for word in ("-D", "=".join(item)))]
        own = {NODE_MARK: mark, "JAVA_HOME": str(java.home)}
        with self._log.open("wb") as log:
            self.manager = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory,
                env={**os.environ, **own}, start_new_session=True,
            )  # fmt: skip

    def watch(self) -> str:
        """Returns when stdin ends (nothing), or the NodeManager does (how)."""
        descriptor = os.pidfd_open(self.manager.pid)
        while True:
            ready, _, _ = select.select([sys.stdin, descriptor], [], [])
            if descriptor in ready:
                return death("its NodeManager", self.manager.wait(), self._log)
            if not os.read(sys.stdin.fileno(), 1 << 16):
                return ""

    def end(self, grace_s: float) -> list[str]:
        """What still runs after everything was told to end, then killed."""
        if self.manager.poll() is None:
            process.end([process.Identity.of(self.manager.pid)], grace_s)
        left = []
        for _ in range(3):  # who forked between the look and the signal is seen at the next
            # The scripts around a container carry no mark, but work in its directory.
            found = list(process.members(self._mark, directories=self._directories))
            if not found:
                return []
            left = process.end(found, grace_s=0)
        return [f"process {one.pid} still runs" for one in left]


def main(cell: str, hosts: list[str], given: str) -> int:
    """``given``: the node's name where the launcher knows it."""
    name = given or own_name(hosts)
    mark = f"{cell}{name}" if cell.endswith(".") else cell
    if os.environ.get(MARKER) != mark:  # a login passes nothing on
        again = [sys.executable, __file__, mark, ",".join(hosts), name]
        os.execve(sys.executable, again, {**os.environ, MARKER: mark})
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    node, why, grace_s = None, "", GRACE_S
    try:
        order = json.loads(_first_line())
        node = Node(name, order)
        _tell(name, started=True)
        why = node.watch()
    except (Failed, OSError, ValueError) as error:
        why = str(error)
    except Told:
        grace_s = 0
    if why:
        _tell(name, failed=why)
    left = node.end(grace_s) if node else []
    _tell(name, ended=True, left=left)
    return 1 if why or left else 0


def _first_line() -> bytes:
    """Not one byte more: the rest of stdin is only looked at for its end."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:
            raise Failed("nobody says what to start")
        line += byte
    return line


def _stop(number: int, frame: FrameType | None) -> None:
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    raise Told


def _tell(name: str, **fields: Any) -> None:
    try:
        print(json.dumps({"node": name, **fields}), flush=True)
    except BrokenPipeError:  # nobody listens: stdin ends as well
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2].split(","), "".join(sys.argv[3:])))
