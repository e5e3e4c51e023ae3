"""Gfarm's programs: where they are, how a daemon is started and how a tool is asked."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from burstlab import process
from burstlab.doctor.capabilities import fuse
from burstlab.doctor.environments import find_command
from burstlab.errors import StorageError
from burstlab.lease import MARKER
from burstlab.nodes import Node
from burstlab.process import Identity
from burstlab.storage.gfarm.configuration import Instance
from burstlab.supervision import ended_how, last_words

PACKAGES = {  # program -> Debian package (envs/gfarm)
    "gfmd": "gfmd",
    "gfsd": "gfsd",
    "gfarm2fs": "gfarm2fs",
    "gfkey": "gfarm-client",
    "gfhost": "gfarm-client",
    "gfsched": "gfarm-client",
    "gfwhere": "gfarm-client",
    "gfls": "gfarm-client",
    "gfpcopy": "gfarm-client",
    "fusermount": "fuse3",
}
START_S = 30.0  # for each thing that is waited for
LOG_BYTES = 1 << 16  # of disk taken in advance: a full disk must not silence who tells of it
ANSWER_S = 30.0  # longer than Gfarm's own time-outs add up to for one operation

# gfsd in the foreground makes a process group of its own, and aborts where it leads a session:
# this shell leads it instead, and ends when gfsd does.
_LEAD = '"$0" "$@"; exit $?'
_OWN_GFSD = "BURSTLAB_GFSD"


def missing() -> str:
    """What this host lacks of the programs and of FUSE, or nothing."""
    absent = [program for program in PACKAGES if find_command(program) is None]
    if absent:
        packages = " ".join(dict.fromkeys(PACKAGES[program] for program in absent))
        return f"{', '.join(absent)} not found: install the packages {packages} (envs/gfarm)"
    return fuse() or ""


def spawn(node: Node, instance: Instance, program: str, arguments: Sequence[str | Path]) -> None:
    """Start a daemon as a child of the lease's holder, so that its death is noticed at once.

    The caller's arguments keep it in the foreground.
    """
    environment = {**os.environ, "GFARM_CONFIG_FILE": str(instance.client_configuration)}
    command: list[str | Path] = [_path_of(program), *arguments]
    if program == "gfsd":
        environment[_OWN_GFSD] = node.lease.id
        command = ["/bin/sh", "-c", _LEAD, *command]
    with instance.log(program).open("wb") as log:
        _reserve(log)
        node.lease.spawn(command, program, log, environment, instance.directory)


def _reserve(log: IO[bytes]) -> None:
    try:
        os.posix_fallocate(log.fileno(), 0, LOG_BYTES)
    except OSError as error:
        raise StorageError(f"{log.name}: {error.strerror}") from error


def wait_until(
    ready: Callable[[], bool], what: str, node: Node, instance: Instance, daemons: Sequence[str]
) -> None:
    """Raises StorageError when one of the daemons ends instead, or after START_S."""
    deadline, pause_s = time.monotonic() + START_S, 0.001
    while not ready():
        for program in daemons:
            if (status := node.lease.children[program].poll()) is not None:
                how, said = ended_how(status), _last_words(program, instance)
                raise StorageError(f"{program} ended at its start ({how}): {said}")
        if time.monotonic() > deadline:
            said = "; ".join(f"{name}: {_last_words(name, instance)}" for name in daemons)
            raise StorageError(f"{what}: not within {START_S:g} s; {said}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.1)


def end(node: Node, program: str, grace_s: float) -> None:
    """End a daemon, if it was started; with gfsd its workers, which may have outlived it.

    A worker overwrites its environment with its title, but goes on working in the spool.
    """
    child = node.lease.children.get(program)
    if child is None:
        return
    if program == "gfsd":
        spool = str(node.host.local_dir / "gfarm" / "spool")
        process.end(process.members(f"{_OWN_GFSD}={node.lease.id}", directories=[spool]), grace_s)
    elif child.poll() is None:
        process.end([Identity.of(child.pid)], grace_s)
    child.poll()


def ask(
    node: Node,
    argv: Sequence[str | Path],
    instance: Instance | None = None,
    limit_s: float = ANSWER_S,
) -> bytes:
    """Run a tool to its end; what it printed.

    One that does not end in time is killed and not waited for, since nothing ends a process
    that waits for a dead file system until its mount is gone. It carries the cell's mark.
    Raises StorageError when the tool fails, or after ``limit_s``.
    """
    tool = Path(argv[0]).name
    environment = {**os.environ, "LC_ALL": "C", MARKER: node.lease.id}
    if instance:
        environment["GFARM_CONFIG_FILE"] = str(instance.client_configuration)
    child = subprocess.Popen(
        [_path_of(tool) if tool in PACKAGES else argv[0], *argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        output, said = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        child.kill()
        raise StorageError(f"{tool} does not answer within {limit_s:g} s") from None
    if child.returncode:
        why = last_words(said.decode(errors="replace"))
        raise StorageError(f"{tool} fails ({ended_how(child.returncode)}): {why}")
    return output


def _path_of(program: str) -> str:
    """Daemons lie off an ordinary user's PATH."""
    found = find_command(program)
    if found is None:
        raise StorageError(f"{program} not found: install {PACKAGES[program]} (envs/gfarm)")
    return found


def said_by(program: str, directory: Path) -> list[str]:
    """The lines of a daemon's log in the instance's directory; none before its start."""
    try:
        text = (directory / f"{program}.log").read_text(errors="replace")
    except FileNotFoundError:
        return []
    return text.strip("\0\n").splitlines()


def _last_words(program: str, instance: Instance) -> str:
    return last_words("\n".join(said_by(program, instance.directory)))
