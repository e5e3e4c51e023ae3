"""Slurm in the lab: slurmctld on the head, slurmd on every node, munged on all (Debian's packages).

Sources: slurm.conf(5), cgroup.conf(5) and munged(8) of Slurm 22.05 and munge 0.5.15.
"""

import os
import re
from pathlib import Path

from lab import accounting
from lab.accounts import Account
from lab.layout import HEAD, Lab
from lab.mounts import fstab_line
from lab.namespaces import answers, listening, wait_until
from lab.schedulers import Launch

_PROGRAMS = (
    "/usr/sbin/munged",
    "/usr/sbin/slurmctld",
    "/usr/sbin/slurmd",
    "/usr/bin/scontrol",
)
MUNGE_SOCKET = Path("/run/munge/munge.socket.2")

CONTROLLER_PORT = 6817
NODE_PORT = 6818
# slurm.conf: nodes silent for this long are down. slurmctld asks every third of it.
NODE_TIMEOUT_S = 6


def programs(lab: Lab) -> tuple[str, ...]:
    """See lab.schedulers."""
    return (*_PROGRAMS, *(accounting.PROGRAMS if lab.accounting else ()))


def folder(lab: Lab) -> Path:
    """State of the daemons; its ``etc`` covers /etc/slurm."""
    return lab.directory / "slurm"


def slurm_conf_text(lab: Lab) -> str:
    """slurm.conf(5)."""
    state = folder(lab)
    nodes = "".join(
        f"NodeName={name} NodeAddr={lab.address(name)} CPUs={lab.cores} "
        f"RealMemory={lab.memory_mb} State=UNKNOWN\n"
        for name in lab.node_names
    )
    accounting = (
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=head\n"
        if lab.accounting
        else "AccountingStorageType=accounting_storage/none\n"
    )
    return f"""\
ClusterName=lab
SlurmctldHost=head({lab.address("head")})
AuthType=auth/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={state / "state"}
SlurmdSpoolDir={lab.directory}/machines/%n/spool
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=50000,bf_interval=5,sched_interval=5,batch_sched_delay=0
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdTimeout={NODE_TIMEOUT_S}
MessageTimeout=5
TCPTimeout=1
KillWait=15
OverTimeLimit=0
MinJobAge=600
DefMemPerCPU={max(1, lab.memory_mb // lab.cores)}
JobCompType=jobcomp/filetxt
JobCompLoc=/var/log/jobcomp.txt
{accounting}{nodes}PartitionName=main Nodes=ALL Default=YES DefaultTime=10 MaxTime=60 State=UP
"""


def cgroup_conf_text() -> str:
    """cgroup.conf(5): nothing here uses cgroups, but slurmd 22.05 wants a plug-in named."""
    return "CgroupPlugin=cgroup/v1\n"


def write(lab: Lab, account: Account) -> None:
    """Make the configuration, munge's key (0600) and the state directories."""
    state = folder(lab)
    for name in ("etc", "state"):
        (state / name).mkdir(mode=0o755, parents=True)
    (state / "etc/slurm.conf").write_text(slurm_conf_text(lab))
    (state / "etc/cgroup.conf").write_text(cgroup_conf_text())
    (lab.log / "jobcomp.txt").touch()
    if lab.accounting:
        accounting.write(state / "etc")
    with open(state / "munge.key", "wb", opener=_private) as key:
        key.write(os.urandom(128))


def prepare(lab: Lab, machine: str) -> None:
    """The directory of munge's socket."""
    (lab.own(machine) / "run/munge").mkdir()


def fstab(lab: Lab, machine: str) -> str:
    """One configuration for all machines."""
    return fstab_line(folder(lab) / "etc", "/etc/slurm", "none", "bind")


def start(lab: Lab, machine: str, launch: Launch) -> None:
    """See lab.schedulers."""
    launch("munged", munged_command(lab, machine), MUNGE_SOCKET.exists)
    if machine == HEAD:
        if lab.accounting:
            accounting.start(lab, launch)
        launch("slurmctld", ["/usr/sbin/slurmctld", "-D"], lambda: listening(CONTROLLER_PORT))
    else:
        wait_until(lambda: answers(HEAD, CONTROLLER_PORT), "slurmctld on the head")
        slurmd = ["/usr/sbin/slurmd", "-D", "-N", machine]
        launch("slurmd", slurmd, lambda: listening(NODE_PORT))


def states_command() -> list[str]:
    """See lab.schedulers. sinfo may show a node that is down as `mix*` until its next change."""
    return ["scontrol", "--oneliner", "show", "node"]


def states(text: str) -> dict[str, str]:
    """See lab.schedulers."""
    lines = (dict(re.findall(r"(\S+?)=(\S*)", line)) for line in text.splitlines())
    return {words["NodeName"]: words["State"].lower() for words in lines if "State" in words}


def is_ready(state: str) -> bool:
    """See lab.schedulers."""
    return state in ("idle", "mixed", "allocated")


def munged_command(lab: Lab, machine: str) -> list[str]:
    """munged(8), in the foreground, with the lab's own key."""
    return [
        "/usr/sbin/munged",
        "--foreground",
        f"--key-file={folder(lab) / 'munge.key'}",
        f"--socket={MUNGE_SOCKET}",
        "--pid-file=/run/munge/munged.pid",
        f"--log-file=/var/log/munged-{machine}.log",
        "--seed-file=/run/munge/munged.seed",
    ]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL, 0o600)
