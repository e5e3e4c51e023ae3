"""Switching a machine on, and its first process.

``python -m lab.machine MACHINE DIRECTORY boot`` runs in the site and returns when the machine
is up; it starts ``python -m lab.machine MACHINE DIRECTORY init`` as pid 1 of the machine.
"""

import functools
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

from burstlab.errors import BurstlabError
from burstlab.mounts import mounts_below
from lab import mounts, namespaces, network, schedulers, ssh
from lab.layout import Lab

LOST_AT_BOOT = ("tmp", "run")  # as on a real node; /local and /var/tmp are disks


def boot(lab: Lab, machine: str) -> None:
    """Plug the machine in, start its first process, and wait until that is done."""
    own = lab.own(machine)
    if mounted := mounts_below(own):
        raise BurstlabError(f"{mounted[0]} is a mount: nothing below {own} is removed")
    for name in mounts.COVERED.values():
        if name in LOST_AT_BOOT:
            shutil.rmtree(own / name, ignore_errors=True)
        (own / name).mkdir(parents=True, exist_ok=True)
        (own / name).chmod(0o755 if name == "run" else 0o1777)
    (own / "spool").mkdir(exist_ok=True)
    (own / "hostname").write_text(f"{machine}\n")
    (own / "boot_id").write_text(f"{uuid.uuid4()}\n")
    carry = mounts.carried([*map(Path, lab.carry), lab.directory])
    for path in carry:
        mounts.within(own, path).mkdir(parents=True, exist_ok=True)
    (own / "run/sshd").mkdir(mode=0o755)
    scheduler = schedulers.of(lab)
    scheduler.prepare(lab, machine)
    (own / "fstab").write_text(
        mounts.machine_fstab(lab, machine, carry) + scheduler.fstab(lab, machine)
    )
    network.plug(lab, machine)
    first = namespaces.python(namespaces.MACHINE_MODULE, machine, lab.directory, "init")
    child = subprocess.Popen(
        namespaces.new_machine(machine, first),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        namespaces.await_started(machine, child)
    except BaseException:
        child.kill()
        raise


def init(lab: Lab, machine: str) -> None:
    """Never returns, except by an error."""
    socket.sethostname(machine)
    os.sched_setaffinity(0, lab.processors(machine, sorted(os.sched_getaffinity(0))))
    mounts.mount_all(lab.own(machine) / "fstab")
    os.chdir("/")
    launch = functools.partial(launch_on, machine)
    launch("sshd", ssh.sshd_command(lab, machine), lambda: namespaces.listening(ssh.PORT))
    schedulers.of(lab).start(lab, machine, launch)
    namespaces.tell_started()
    namespaces.reap_forever()


def launch_on(machine: str, name: str, argv: list[str], answers: Callable[[], bool]) -> None:
    """Start a daemon of this machine and wait until it answers. Raises BurstlabError."""
    log = Path("/var/log") / f"{name}-{machine}.out"
    environment = {"PATH": namespaces.PATH, "LANG": "C.UTF-8"}
    namespaces.launch(name, argv, log, environment, answers)


if __name__ == "__main__":
    try:
        {"boot": boot, "init": init}[sys.argv[3]](Lab.load(Path(sys.argv[2])), sys.argv[1])
    except (BurstlabError, OSError) as error:
        sys.exit(str(error))
