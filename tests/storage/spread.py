"""A storage provisioned on several hosts of a lab, from the first of them.

Also the program that runs the body of a test there: ``python -m tests.storage.spread BODY CASE``.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from burstlab import lease
from burstlab.agents import AgentNodes
from burstlab.launch import launcher
from burstlab.nodes import Host, Nodes
from burstlab.pfs.site import MountedPfs, ParallelFileSystem
from tests.lab.cluster import NODES
from tests.storage.provisioned import Provisioned

LOCAL, SHARED = Path("/local"), Path("/pfs/work")
LIMIT_S = 300.0
GFARM = ("gfmd", "gfsd", "gfarm2fs")


class Spread(Provisioned):
    """The same as on virtual nodes, of hosts with an agent each."""

    def _nodes(self) -> Nodes:
        names = NODES[: self.case.nodes]
        directory = Path(f"{self.directory}.node")
        self.lease.mark()
        return AgentNodes(names, directory, self.case.launch, (), self.lease, self.directory)

    def _pfs(self) -> ParallelFileSystem:
        return MountedPfs(SHARED, self.lease.id, self.lease)

    def place(self, host: Host) -> Path:
        return self.storage.mount

    def names(self, host: Host) -> list[str]:
        return sorted(self.on(host, "ls", "-A", str(self.place(host))).splitlines())

    def write(self, host: Host, name: str, text: str) -> None:
        script = 'head -c "$1" /dev/zero | tr "\\0" x >"$0"'
        self.on(host, "sh", "-c", script, str(self.place(host) / name), str(len(text)))

    def check(self) -> dict[str, str]:
        """All hosts at once."""
        running = {
            host: subprocess.Popen(self._launched(host, *self.checks(host)), stdout=subprocess.PIPE)
            for host in self.nodes.hosts
        }
        failed: dict[str, str] = {}
        for host, one in running.items():
            failed |= self.told(host, one.communicate(timeout=LIMIT_S)[0].decode())
        return failed

    def ruin(self) -> None:
        last = self.nodes.hosts[-1]
        self.on(last, "rm", "-rf", str(last.local_dir))
        shutil.rmtree(self.pfs.work)

    def daemons(self) -> list[tuple[Host, str]]:
        """Gfarm's; those of BeeOND and gfarmbb are their own, and the tests of each kill them."""
        if self.case.storage != "gfarm" or self.case.way:
            return []
        first, *others = self.nodes.hosts
        return [(first, "gfmd"), *((host, name) for host in others for name in GFARM[1:])]

    def kill(self, host: Host, name: str) -> None:
        self.on(host, sys.executable, "-m", __spec__.name, "kill", f"{self.lease.id}.{host.name}",
                name)  # fmt: skip

    def on(self, host: Host, *argv: str) -> str:
        """Run a command on a host, which must succeed; its output."""
        command = self._launched(host, *argv)
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, f"{shlex.join(argv)}: {done.stdout}{done.stderr}"
        return done.stdout

    def _launched(self, host: Host, *argv: str) -> list[str]:
        return launcher(self.case.launch)([host.name], ["env", *_carried(), *argv], [])


def _carried() -> list[str]:
    """What ssh does not bring along."""
    return [f"{name}={os.environ[name]}" for name in ("PYTHONPATH", "PATH")]


def kill(identifier: str, name: str) -> None:
    """End the process of that name in a session of the agent's lease on this host."""
    held = lease.read(lease.state_directory() / f"{identifier}.lease")
    sessions = {one.pid for one in held.processes}
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/comm").read_text() == f"{name}\n" and os.getsid(pid) in sessions:
                os.kill(pid, signal.SIGKILL)
                return
    raise SystemExit(f"no {name} here")


def main(body: str, name: str) -> None:
    """Run the body of a test for the case of that name."""
    from tests.storage import test_conformance as bodies

    case = next(case for case in bodies.CASES if str(case) == name)
    function: Any = getattr(bodies, body)
    lease.reap()
    with bodies.cell(case, LOCAL) as fresh:
        function(fresh)


if __name__ == "__main__":
    if sys.argv[1] == kill.__name__:
        kill(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
