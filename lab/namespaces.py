"""The lab's process tree, as the host sees it.

    unshare           journalled in the lab's lease
    └ site            pid 1 of the site; also in the journal, and holds the lease
      ├ pfs           server of the emulated parallel file system
      └ unshare       one for each machine
        └ machine     pid 1 of the machine: sshd, slurmd, ...

When the site ends, the kernel ends everything below it.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from burstlab.errors import BurstlabError
from burstlab.supervision import last_words

REPOSITORY = Path(__file__).resolve().parents[1]
SITE_MODULE = "lab.site"
MACHINE_MODULE = "lab.machine"
PFS_MODULE = "burstlab.pfs"
STARTED = "started"  # what a started program prints once, as its last word

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT_VARIABLES = ("LANG", "PYTHONDONTWRITEBYTECODE")

_SITE_KINDS = ("--mount", "--net", "--pid")
_MACHINE_KINDS = ("--mount", "--uts", "--ipc", "--pid")


def python(module: str, *arguments: str | Path) -> list[str]:
    """One of the lab's own programs; standard library only, hence without site-packages."""
    return [sys.executable, "-S", "-m", module, *map(str, arguments)]


def environment() -> dict[str, str]:
    """Of the lab's own programs: nothing of the caller's but what finds the programs."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {**kept, "PATH": PATH, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'src'}"}


def new_site(program: list[str]) -> list[str]:
    """Runs ``program`` as pid 1 of a new site."""
    return ["unshare", *_SITE_KINDS, "--fork", "--kill-child", "--propagation", "private", *program]


def new_machine(machine: str, program: list[str]) -> list[str]:
    """Runs ``program``, in the site, as pid 1 of a new machine; mounts of the site reach it."""
    network = ["nsenter", f"--net=/run/netns/{machine}"]
    unshare = ["unshare", *_MACHINE_KINDS, "--fork", "--kill-child", "--mount-proc"]
    return [*network, *unshare, "--propagation", "slave", *program]


def in_site(pid: int, program: list[str]) -> list[str]:
    """Runs ``program`` in the site whose pid 1 has ``pid`` on this host."""
    return ["nsenter", "--target", str(pid), *_SITE_KINDS, "--wdns=/", *program]


def in_machine(pid: int, directory: str, program: list[str]) -> list[str]:
    """Runs ``program`` in the machine whose pid 1 has ``pid`` here, in a directory of it."""
    kinds = (*_MACHINE_KINDS, "--net")
    return ["nsenter", "--target", str(pid), *kinds, f"--wdns={directory}", *program]


def children(pid: int) -> list[int]:
    """Children of a process of one thread; none when it has ended."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in listed.split()]


def command(pid: int) -> list[str]:
    """Command line of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def machines(site: int) -> dict[str, int]:
    """Machine -> pid of its first process on this host, of those that run in the site."""
    found = {}
    for outer in children(site):
        for pid in children(outer):
            words = command(pid)
            if MACHINE_MODULE in words:
                found[words[words.index(MACHINE_MODULE) + 1]] = pid
    return found


def pfs_server(site: int) -> int | None:
    """Pid on this host of the emulated parallel file system's server, while it runs."""
    return next((pid for pid in children(site) if PFS_MODULE in command(pid)), None)


def tell_started() -> None:
    """Tell whoever waits in ``await_started`` that all is well, and let go of the pipe."""
    os.write(1, f"{STARTED}\n".encode())
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.close(quiet)


def await_started(what: str, child: subprocess.Popen[bytes]) -> None:
    """Wait for ``tell_started`` at the other end of the child's stdout.

    Raises BurstlabError with the last line that came, when the child ended without.
    """
    assert child.stdout is not None
    said = f"{what} ended without a word"
    for line in child.stdout:
        if line.strip() == STARTED.encode():
            return
        said = line.decode(errors="replace").strip() or said
    raise BurstlabError(said)


def wait_until(done: Callable[[], bool], what: str, limit_s: float = 30.0) -> None:
    """Ask every 10 ms. Raises BurstlabError after ``limit_s``."""
    deadline = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline:
            raise BurstlabError(f"{what}: not within {limit_s:g} s")
        time.sleep(0.01)


def listening(port: int) -> bool:
    """Whether something on this machine listens on a TCP port (proc(5), /proc/net/tcp)."""
    lines = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    return any(
        fields[1].endswith(f":{port:04X}") and fields[3] == "0A"
        for line in lines.splitlines()
        if len(fields := line.split()) > 3
    )


def answers(host: str, port: int) -> bool:
    """Whether something listens on a TCP port."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def reap_forever() -> None:
    """What a pid 1 does: collect the orphans of its name space."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(1)


def launch(
    name: str,
    argv: list[str],
    log: Path,
    environment: Mapping[str, str],
    answers: Callable[[], bool],
) -> None:
    """Start a daemon in a session of its own, its output in ``log``; wait until it answers.

    Raises BurstlabError with the last line of its log.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    wait_until(lambda: child.poll() is not None or answers(), name)
    if child.returncode is not None:
        said = last_words(log.read_text(errors="replace"))
        raise BurstlabError(f"{name} ended with status {child.returncode}: {said}")
