"""What ``burstlab lab`` does: up, down, status, kill, start, exec."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from burstlab import lease, process
from burstlab.errors import BurstlabError, ConfigurationError, NodeError
from burstlab.lease import Lease
from burstlab.process import Identity
from burstlab.stopping import Stopped, StopSignals, deferred
from lab import accounts, mounts, namespaces, schedulers, ssh, writing
from lab.execution import DEFAULT_SIGNALS, execute
from lab.layout import HEAD, PFS_WORK, Lab

KIND = "lab"  # in the lease of a lab
PROGRAMS = ("ip", "tc", "mount", "pivot_root", "unshare", "nsenter", "setpriv", "ssh-keygen")
# Grid Engine needs up to 65 s to let go of the last life of a node that was lost.
READY_LIMIT_S = 120.0
ASKING_LIMIT_S = 30
KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "TERM")


def up(lab: Lab) -> None:
    """Make a lab and wait until jobs can start on all its nodes; all or nothing.

    Raises ConfigurationError before anything is started, BurstlabError after it was undone.
    """
    check(lab)
    account = accounts.account(lab.user, lab.home)
    held = Lease.create(f"lab-{os.urandom(4).hex()}", kind=KIND, directory=str(lab.directory))
    with StopSignals(0).active() as signals:
        try:
            held.directory(lab.directory).chmod(0o755)
            writing.write(lab, account)
            start_site(lab, held)
            boot(lab, lab.machines)
        except BaseException as error:
            signals.hold()
            for problem in clean(held):
                print(f"burstlab lab up: {problem}", file=sys.stderr)
            if isinstance(error, Stopped):
                raise BurstlabError(str(error)) from None
            raise


def down(directory: Path) -> None:
    """End a lab, and all that is left of one. Raises BurstlabError when something stays."""
    found = journals(directory)
    if not found:
        raise ConfigurationError(
            f"no lab in {directory} has a lease in {lease.state_directory()} (BURSTLAB_STATE)"
        )
    if Path.cwd().is_relative_to(directory):
        raise ConfigurationError(f"who works in {directory} ends with it: leave it first")
    for journal in found:
        held = lease.read(journal)
        holder = Identity(*held.about["holder"])
        if holder.pid != os.getpid():
            process.end([holder], grace_s=30)  # a `lab up` at work: it undoes what it did
        process.end(held.processes, grace_s=0)
    problems = [
        problem
        for stale in lease.stale()
        if stale.journal in found
        for problem in clean(stale)
    ]  # fmt: skip
    if problems or journals(directory):
        raise BurstlabError("; ".join(problems) or f"the lab in {directory} is still held")


def status(lab: Lab) -> str:
    """One line for each machine: name, address, on or off, the scheduler's state of it.

    The last line is about the parallel file system: directory, on or off, the server's pid.
    """
    site = site_pid(lab)
    running, server = namespaces.machines(site), namespaces.pfs_server(site)
    states = node_states(lab) if HEAD in running else {}
    rows = [
        (machine, lab.address(machine), machine in running, states.get(machine, ""))
        for machine in lab.machines
    ]
    rows.append(("pfs", PFS_WORK, server is not None, f"pid {server}" if server else ""))
    return "\n".join(
        f"{name:8} {where:13} {'on' if on else 'off':4}{state}".rstrip()
        for name, where, on, state in rows
    )


def kill(lab: Lab, machine: str) -> None:
    """Lose a machine: its cable is cut, then all its processes are killed.

    The others see no end of any connection, just silence, as when the power is gone.
    """
    site = site_pid(lab)
    pid = machine_pid(lab, machine)
    run(namespaces.in_site(site, ["ip", "link", "set", machine, "down"]))
    if process.end([Identity.of(pid)], grace_s=0):
        raise NodeError(machine, "some of its processes could not be killed")


def start(lab: Lab, machine: str) -> None:
    """Switch a lost machine on again. Raises NodeError."""
    if lab.require(machine) in namespaces.machines(site_pid(lab)):
        raise NodeError(machine, "is on already")
    boot(lab, [machine])


def execute_on(lab: Lab, machine: str, user: str, argv: list[str]) -> int:
    """Run ``argv`` on a machine as a user, in the foreground; its exit status."""
    return execute(*command(lab, machine, user, argv))


def command(lab: Lab, machine: str, user: str, argv: list[str]) -> tuple[list[str], dict[str, str]]:
    """What to execute, with which environment, to run ``argv`` on a machine as a user.

    The environment is that user's, without the caller's but for PATH and the like; the working
    directory stays when the machine has it.
    """
    here = Path.cwd()
    seen = not mounts.hidden(here) or any(here.is_relative_to(path) for path in lab.carry)
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    if user == "root":
        home, switch = "/root", []
    else:
        account = accounts.account(user, lab.home)
        home = str(account.home)
        identity = [f"--reuid={account.uid}", f"--regid={account.gid}", "--init-groups"]
        switch = ["setpriv", *identity]
    environment |= {"HOME": home, "USER": user, "LOGNAME": user}
    pid, directory = machine_pid(lab, machine), str(here) if seen else "/"
    program = [*DEFAULT_SIGNALS, *switch, *argv]
    return namespaces.in_machine(pid, directory, program), environment


def check(lab: Lab) -> None:
    """Whether a lab can be made here. Raises ConfigurationError, which says what is missing."""
    if os.geteuid() != 0:
        raise ConfigurationError("a lab needs root, for name spaces and mounts: use sudo")
    if lab.directory.exists():
        raise ConfigurationError(
            f"{lab.directory} exists: take that lab down, or give another --directory"
        )
    if lab.directory.is_relative_to("/run") or not lab.directory.parent.is_dir():
        raise ConfigurationError(
            f"--directory {lab.directory}: its parent must exist, and not be in /run"
        )
    closed = [path for path in lab.directory.parents if not path.stat().st_mode & 0o001]
    if closed:
        raise ConfigurationError(
            f"--directory {lab.directory}: ordinary users can't get through {closed[-1]}"
        )
    wanted = (*PROGRAMS, ssh.SSHD, *schedulers.of(lab).programs(lab))
    if missing := [program for program in wanted if shutil.which(program) is None]:
        raise ConfigurationError(
            f"missing for the lab: {', '.join(missing)}; "
            "`make setup` installs them, or apt-get what envs/lab*/debian.txt lists"
        )
    if not Path("/dev/fuse").exists():
        raise ConfigurationError("there is no /dev/fuse, which the lab's file systems need")


def start_site(lab: Lab, held: Lease) -> None:
    """Start the site; it holds the lease from now on. Raises BurstlabError."""
    program = namespaces.python(namespaces.SITE_MODULE, lab.directory, held.journal)
    child = held.spawn(
        namespaces.new_site(program),
        "site",
        output=subprocess.PIPE,
        environment={**namespaces.environment(), "BURSTLAB_STATE": str(held.journal.parent)},
        directory="/",
        heir=True,
    )
    namespaces.await_started("the site", child)


def boot(lab: Lab, machines: Iterable[str]) -> None:
    """Switch machines on at once; returns when jobs can start on them. Raises NodeError."""
    site = site_pid(lab)
    booting = {
        machine: subprocess.Popen(
            namespaces.in_site(
                site,
                namespaces.python(namespaces.MACHINE_MODULE, machine, lab.directory, "boot"),
            ),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=namespaces.environment(),
            start_new_session=True,
        )
        for machine in machines
    }
    for machine, child in booting.items():
        said = child.communicate()[1].strip().splitlines()
        if child.returncode != 0:
            raise NodeError(machine, said[-1] if said else f"exit status {child.returncode}")
    nodes = [machine for machine in booting if machine != HEAD]
    namespaces.wait_until(
        lambda: not waiting_for(lab, nodes),
        f"readiness of {', '.join(nodes)}",
        limit_s=READY_LIMIT_S,
    )


def waiting_for(lab: Lab, nodes: Iterable[str]) -> list[str]:
    """Those of ``nodes`` on which the scheduler would not start a job now."""
    states, is_ready = node_states(lab), schedulers.of(lab).is_ready
    return [node for node in nodes if not is_ready(states.get(node, ""))]


def node_states(lab: Lab) -> dict[str, str]:
    """What the scheduler says of its nodes; nothing when it does not answer."""
    scheduler = schedulers.of(lab)
    asking = ["timeout", f"{ASKING_LIMIT_S}", *scheduler.states_command()]
    argv, environment = command(lab, HEAD, "root", asking)
    with deferred():  # a killed nsenter would leave its child to nobody
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, start_new_session=True
        )
    return scheduler.states(done.stdout)


def site_pid(lab: Lab) -> int:
    """Pid on this host of the site's first process. Raises ConfigurationError when it is down."""
    for journal in journals(lab.directory):
        processes = lease.read(journal).processes
        if len(processes) == 2 and processes[1].alive():
            return processes[1].pid
    raise ConfigurationError(f"the lab in {lab.directory} is not up; `burstlab lab down` cleans it")


def machine_pid(lab: Lab, machine: str) -> int:
    """Pid on this host of a machine's first process. Raises NodeError when it is off."""
    try:
        return namespaces.machines(site_pid(lab))[lab.require(machine)]
    except KeyError:
        raise NodeError(machine, f"is off; `burstlab lab start {machine}` boots it") from None


def journals(directory: Path) -> list[Path]:
    """Leases of the lab in ``directory``."""
    return [
        journal
        for journal in lease.leases()
        if (about := lease.read(journal).about).get("kind") == KIND
        and about.get("directory") == str(directory)
    ]


def clean(held: Lease) -> list[str]:
    """Clean and release the lease of a lab; returns what could not be cleaned."""
    problems = held.clean(grace_s=0)
    if not problems:
        held.release()
    return problems


def run(argv: list[str]) -> None:
    """Run a program in the lab. Raises BurstlabError with what it said."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise BurstlabError(f"{argv[-1]}: {done.stderr.strip()}")
