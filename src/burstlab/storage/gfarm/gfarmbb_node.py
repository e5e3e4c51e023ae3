"""What one host does for a Gfarm that gfarmbb(1) starts: node actions.

gfarmbb needs three commands on every host that burstlab gives it: mount.gfarm2fs and
umount.gfarm2fs (upstream's contrib/mount.gfarm2fs, not in Debian's packages; without them gfarmbb
mounts nothing and succeeds), and a pkill that keeps to this cell, for gfarmbb ends every gfsd and
gfmd that it may signal, at its start too.
"""

import os
import pwd
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import IO, Any

from burstlab import process
from burstlab.doctor.environments import SYSTEM_DIRECTORIES, find_command
from burstlab.errors import StorageError
from burstlab.lease import MARKER
from burstlab.nodes import Node
from burstlab.process import Identity
from burstlab.storage.gfarm.configuration import Instance
from burstlab.storage.gfarm.integrity import keep
from burstlab.storage.gfarm.network import listens, local_addresses
from burstlab.storage.gfarm.node import instance_on, is_mounted, prove, socket_directory
from burstlab.supervision import ended_how, last_words

GFMD_PORT, GFSD_PORT = 10601, 10600  # of config-gfarm -S and config-gfsd -S
# Pipes between gfarmbb and the cell, on the first host. A start and a stop have each their own: a
# start that was broken off goes on until the lease ends it, and may not speak in the stop's place.
STEPS, STATUSES = "steps", "statuses"
EVERYWHERE = "everywhere"
SCRIPT_S = 120.0
PROGRAMS = {  # -> Debian package; the last is of the base system
    "gfarmbb": "gfarm-client",
    "gfmkdir": "gfarm-client",
    "config-gfarm": "gfmd",
    "config-gfsd": "gfsd",
    "awk": "mawk",
}
CONTRIBUTED = ("mount.gfarm2fs", "umount.gfarm2fs")

_RUN = """\
"$@" >"$0/gfarmbb.said" 2>&1
printf 'end %s\\0' "$?" >"$0/steps"
"""
# In mpirun's place, called with `sh -c STEP`.
_EVERYWHERE = """\
#!/bin/sh
own="${0%/*}"
printf 'run %s\\0' "$3" >"$own/steps"
read -r status <"$own/statuses"
exit "$status"
"""
_COMMANDS = {
    "mount.gfarm2fs": """\
#!/bin/sh
# mount.gfarm2fs CONFIGURATION MOUNT_POINT OPTIONS, as gfarmbb calls it
export GFARM_CONFIG_FILE="$1"
exec gfarm2fs -o "modules=subdir,subdir=$GFARMFS_ROOT" -o "$3" "$2"
""",
    "umount.gfarm2fs": """\
#!/bin/sh
exec fusermount -u "$GFS_MOUNTDIR"
""",
    "pkill": f"""\
#!/bin/sh
for process in /proc/[0-9]*; do
    [ "$(cat "$process/comm")" = "$1" ] || continue
    tr '\\0' '\\n' <"$process/environ" | grep -qxF "{MARKER}=${MARKER}" || continue
    kill "${{process#/proc/}}"
done 2>/dev/null
""",
}


def directory_of(node: Node) -> Path:
    """Of this host's part, where burstlab's own launcher has it too."""
    return node.host.local_dir / "gfarm"


def lacking(node: Node) -> str:
    """Node action: what gfarmbb needs and this host lacks, or nothing."""
    absent = [program for program in PROGRAMS if find_command(program) is None]
    packages = " ".join(dict.fromkeys(PROGRAMS[program] for program in absent))
    return f"{', '.join(absent)} not found: install the packages {packages}" if absent else ""


def prepare(node: Node, mount: str) -> None:
    """Node action: directories, mount point and commands, before gfarmbb looks for them."""
    for port in (GFMD_PORT, GFSD_PORT):
        if listens(port):
            raise StorageError(
                f"port {port} is in use, and gfarmbb knows no other: a host takes one Gfarm/BB"
            )
    for address in local_addresses():
        node.lease.directory(socket_directory(address, GFSD_PORT))
    directory_of(node).mkdir(0o700)
    commands = directory_of(node) / "bin"
    commands.mkdir(0o700)
    for name, text in _COMMANDS.items():
        if name in CONTRIBUTED and find_command(name):
            continue
        _write_command(commands / name, text)
    Path(mount).mkdir(0o700)
    node.lease.mount(mount)


def run(
    node: Node, head: str, mode: str, words: Sequence[str], configuration: str, mount: str
) -> None:
    """Node action: gfarmbb itself, on the host ``head``. It writes each step that is to be done
    on every host into one pipe, at last its end, and waits at another for a step's status."""
    if node.host.name != head:
        return
    directory = directory_of(node) / mode
    directory.mkdir(0o700)
    for pipe in (directory / STEPS, directory / STATUSES):
        os.mkfifo(pipe, 0o600)
    _write_command(directory / EVERYWHERE, _EVERYWHERE)
    everywhere = ["-mpi", str(directory / EVERYWHERE)]
    command = ["/bin/sh", "-c", _RUN, str(directory), "gfarmbb", *everywhere, *words, mode]
    _spawn(node, command, configuration, mount, DEVNULL)


def run_script(node: Node, script: str, configuration: str, mount: str) -> None:
    """Node action: what gfarmbb wants done on every host. Raises StorageError."""
    log = directory_of(node) / "gfarmbb.log"
    with log.open("ab") as output:
        child = _spawn(node, ["/bin/sh", "-c", script], configuration, mount, output)
    try:
        status = child.wait(SCRIPT_S)
    except TimeoutExpired:
        child.kill()
        raise StorageError(f"not within {SCRIPT_S:g} s: {script}") from None
    if status:
        said = last_words(log.read_text(errors="replace"))
        raise StorageError(f"{script} fails ({ended_how(status)}): {said}")


def _write_command(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o700)


def _spawn(
    node: Node, command: Sequence[str], configuration: str, mount: str, output: int | IO[bytes]
) -> Popen[bytes]:
    path = [f"{directory_of(node)}/bin", os.environ.get("PATH", os.defpath), *SYSTEM_DIRECTORIES]
    variables = {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "USER": pwd.getpwuid(os.getuid()).pw_name,
        "GFARM_CONFIG_FILE": f"{configuration}/gfarm2.conf",
        "GFS_MOUNTDIR": mount,
        "LC_ALL": "C",
    }
    child = node.lease.spawn(command, "gfarmbb", output, variables, "/")
    del node.lease.children["gfarmbb"]  # its end is no death
    return child


def adopt(node: Node, head: str, scratch: str, configuration: str, mount: str) -> dict[str, Any]:
    """Node action: look at what gfarmbb says it has started, and watch it from now on."""
    instance = _instance(node, head)
    if not is_mounted(mount):
        raise StorageError(f"gfarmbb ended well, and {mount} is not mounted")
    directory, below = instance.directory, Path(scratch)
    instance.client_configuration.symlink_to(f"{configuration}/gfarm2.conf")
    instance.key.symlink_to(f"{configuration}/.gfarm_shared_key")
    instance.spool.symlink_to(below / "var" / "gfarm-spool")
    daemons = {"gfsd": below / "var/run/gfsd.pid"}
    if node.host.name == head:
        daemons["gfmd"] = below / "var/run/gfmd.pid"
        instance.log("gfmd").symlink_to(below / "log" / f"gfmd-{os.uname().nodename}.log")
    try:
        running = {name: Identity.of(int(file.read_text())) for name, file in daemons.items()}
    except (OSError, ValueError) as error:
        raise StorageError(f"gfarmbb ended well, and a daemon does not run: {error}") from error
    keep(directory, {**running, "gfarm2fs": _mounter(node)})
    return prove(node, instance, mount, [])


def _instance(node: Node, head: str) -> Instance:
    """Here a host is called what ``hostname -f`` says."""
    own = socket.getaddrinfo(os.uname().nodename, None, flags=socket.AI_CANONNAME)
    return replace(instance_on(node, head, GFMD_PORT), host=own[0][3])


def _mounter(node: Node) -> Identity:
    for one in process.members(f"{MARKER}={node.lease.id}"):
        if Path(f"/proc/{one.pid}/comm").read_text() == "gfarm2fs\n":
            return one
    raise StorageError("gfarmbb ended well, and no gfarm2fs runs")
