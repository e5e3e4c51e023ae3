"""YARN on the hosts of a cell: up, ready, watched, down.

ResourceManager and history server run on the first host, beside this process; a NodeManager runs
on every host (nodes.py).
"""

import contextlib
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import configuration
from configuration import PORTS, Configuration
from failure import Failed, death
from installation import Hadoop, Java
from nodes import Nodes
from parameters import Parameters, Place

from burstlab.process import Identity, end
from burstlab.storage.gfarm.network import FreePort

DAEMONS = {
    "ResourceManager": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "history server": "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
}
READY_S = 300  # JVMs on a loaded machine
GRACE_S = 5.0
ASK_S = 2.0  # between two questions to the ResourceManager
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever http_proxy says


class Cluster:
    """Use ``running``."""

    def __init__(self, place: Place, parameters: Parameters, java: Java, hadoop: Hadoop) -> None:
        self.place, self.parameters, self.java, self.hadoop = place, parameters, java, hadoop
        self._logs = place.directory / "hadoop"
        self._conf = self._logs / "conf"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._nodes = Nodes(place)
        self._asked = 0.0
        self._configuration: Configuration

    @contextmanager
    def running(self) -> Iterator["Cluster"]:
        """Everything is up and ready, and down at the end. Raises Failed."""
        try:
            self._start()
            yield self
        finally:
            left = self._end()
        if left:
            raise Failed("; ".join(left))

    def command(self, main: str, *arguments: str) -> list[str]:
        """Java on the cell's configuration."""
        where = f"{self._conf}:{self.hadoop.classpath}"
        return [self.java.program, *self._configuration.options(), "-cp", where, main, *arguments]

    def spawn(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """A process with a log of its own; see ``log``."""
        with self.log(name).open("wb") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "JAVA_HOME": str(self.java.home)}, start_new_session=True,
            )  # fmt: skip

    def log(self, name: str) -> Path:
        """Of a daemon or a client."""
        return self._logs / f"{name.replace(' ', '-').lower()}.log"

    def check(self) -> None:
        """Raises Failed when a daemon has ended or a node is no longer of use; cheap."""
        for name, daemon in self._daemons.items():
            if daemon.poll() is not None:
                raise Failed(death(f"the {name}", daemon.returncode, self.log(name)))
        self._nodes.check()
        if time.monotonic() > self._asked + ASK_S:
            self._asked = time.monotonic()
            for node in self._lost():
                raise Failed(node)

    def application(self, identifier: str) -> dict[str, Any]:
        """What the ResourceManager knows of one; empty when it does not answer."""
        found = self._ask("web", f"/ws/v1/cluster/apps/{identifier}") or {}
        return dict(found.get("app") or {})

    def _start(self) -> None:
        place = self.place
        with ExitStack() as ports:
            kept = {name: ports.enter_context(FreePort()).number for name in PORTS}
            self._configuration = Configuration(place, self.parameters, self.hadoop, kept)
            files = self._configuration.files()
            configuration.write(self._conf, files)
            (place.local / "terasort" / "tmp").mkdir(parents=True, exist_ok=True)
            for name, main in DAEMONS.items():
                self._daemons[name] = self.spawn(name, *self.command(main))
            self._nodes.start(self._order(files))
            self._await_ready()

    def _order(self, files: dict[str, str]) -> dict[str, Any]:
        """What every node is told."""
        on_mount = self.parameters.spill == "mount"
        return {
            "alone": self.place.alone,
            "java_home": str(self.java.home),
            "options": self._configuration.options(),
            "classpath": self.hadoop.classpath,
            "files": files,
            "local": str(self.place.local),
            "spill": str(self.place.mount / "spill") if on_mount else "",
        }

    def _await_ready(self) -> None:
        deadline, wanted = time.monotonic() + READY_S, len(self.place.names)
        active = 0
        while time.monotonic() < deadline:
            self.check()
            metrics = (self._ask("web", "/ws/v1/cluster/metrics") or {}).get("clusterMetrics", {})
            active = metrics.get("activeNodes", 0)
            if active == wanted and self._ask("history_web", "/ws/v1/history/info"):
                return
            self._nodes.listen(0.2)
            time.sleep(0.1)
        raise Failed(f"YARN is not ready after {READY_S} s: {active} of {wanted} nodes are active")

    def _lost(self) -> Iterator[str]:
        """Nodes that the ResourceManager gives no work."""
        found = self._ask("web", "/ws/v1/cluster/nodes?states=UNHEALTHY,LOST,SHUTDOWN,REBOOTED")
        for node in ((found or {}).get("nodes") or {}).get("node", []):
            report = f": {node['healthReport']}" if node.get("healthReport") else ""
            yield f"{node['nodeHostName']}: its NodeManager is {node['state']}{report}"

    def _ask(self, daemon: str, path: str) -> dict[str, Any] | None:
        """An answer over REST, or None for none."""
        url = f"http://{self._configuration.web(daemon)}{path}"
        request = urllib.request.Request(url, headers={"Accept": "application/json"})
        try:
            with DIRECT.open(request, timeout=30) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError, urllib.error.URLError):
            return None

    def _end(self) -> list[str]:
        """Nodes first: a container may still talk to the others. What could not be ended."""
        left = self._nodes.end()
        running = [one for one in self._daemons.values() if one.poll() is None]
        still = []
        with contextlib.suppress(ProcessLookupError):
            still = end([Identity.of(one.pid) for one in running], GRACE_S)
        for daemon in running:
            daemon.poll()
        return [*left, *(f"process {one.pid} still runs" for one in still)]
