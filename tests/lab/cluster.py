"""A lab under test, driven as a user drives it: through the command."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lab import namespaces

REPOSITORY = Path(__file__).resolve().parents[2]
NODES = ("node01", "node02", "node03", "node04")
HOST_TRACES = (["ip", "-o", "link"], ["ls", "-A", "/run"], ["ls", "-A", "/"])


class Cluster:
    """One lab in a directory of its own, which ordinary users can reach; gone after a `with`."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="lab-"))
        self.base.chmod(0o755)
        self.directory = self.base / "lab"
        self.environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def argv(self, command: str, *arguments: str) -> list[str]:
        """The words of ``burstlab lab COMMAND`` for this lab."""
        where = ["--directory", str(self.directory)]
        return [sys.executable, "-m", "burstlab", "lab", command, *where, *arguments]

    def lab(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``burstlab lab COMMAND``."""
        return subprocess.run(
            self.argv(command, *arguments),
            env=self.environment,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def must(self, command: str, *arguments: str) -> str:
        """Run ``burstlab lab COMMAND``, which must succeed; its output."""
        done = self.lab(command, *arguments)
        assert done.returncode == 0, f"{command} {arguments}: {done.stderr}{done.stdout}"
        return done.stdout

    def run(self, machine: str, *argv: str, user: str = "lab") -> str:
        """Run a command on a machine, which must succeed; its output."""
        return self.must("exec", "--user", user, machine, "--", *argv)

    def start(self, command: str, *arguments: str) -> subprocess.Popen[str]:
        """Start ``burstlab lab COMMAND`` and go on."""
        return subprocess.Popen(
            self.argv(command, *arguments),
            env=self.environment,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def journal(self) -> str:
        """The text of the lab's lease; empty when there is none."""
        for journal in Path(os.environ["BURSTLAB_STATE"]).glob("lab-*.lease"):
            if f'"{self.directory}"' in (text := journal.read_text()):
                return text
        return ""

    def site_pids(self) -> list[int]:
        """The two processes in the lease: unshare, and pid 1 of the site."""
        lines = self.journal().splitlines()
        return [int(line.split()[0]) for line in lines if line[:1].isdigit()]

    def machines(self) -> dict[str, int]:
        """Machine -> pid of its first process, on this host."""
        return namespaces.machines(self.site_pids()[1])

    def left(self) -> list[str]:
        """What of the lab is still there on the host."""
        found = [str(path) for path in (self.directory,) if path.exists()]
        found += [line for line in self.journal().splitlines()[:1] if line]
        found += [f"process {pid}: {words}" for pid, words in processes(str(self.directory))]
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        return found + [line for line in mounts if str(self.base) in line]

    def remove(self) -> None:
        """End the lab, whatever became of the test, and remove its directory."""
        if self.journal():
            self.must("down")
        shutil.rmtree(self.base)


def processes(word: str) -> list[tuple[int, str]]:
    """(pid, command line) of processes on this host with ``word`` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_text(errors="replace").replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if word in words:
                found.append((int(entry.name), words))
    return found


def host_traces() -> list[str]:
    """What a lab must not change on the host: interfaces, name spaces, top-level directories."""
    return [
        subprocess.run(command, capture_output=True, text=True).stdout for command in HOST_TRACES
    ]
