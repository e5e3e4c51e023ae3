"""Which hosts a cell gets: from the scheduler's environment, a given list, or this machine.

Order of precedence: a given list, virtual nodes, PBS, Grid Engine, Slurm. Every host counts
once, in the order in which the scheduler names them; a cell on n nodes takes the first n.
Sources: pbs_resources(7) and qsub(1) of OpenPBS, sge_pe(5) of Grid Engine, sbatch(1).
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from burstlab.errors import AllocationError

ORIGIN = "BURSTLAB_HOSTS_FROM"  # who named the hosts that burstlab.relay gives by --hosts


class Allocation(NamedTuple):
    """The hosts a cell runs on; ``origin`` says where the list came from."""

    hosts: tuple[str, ...]
    origin: str
    cores_per_node: int
    virtual: bool = False

    def hostfile(self) -> str:
        """One host a line; virtual nodes are this machine as often as there are nodes."""
        return "".join(f"{'localhost' if self.virtual else host}\n" for host in self.hosts)


def allocate(
    nodes: int | None,
    hosts: str = "",
    virtual: bool = False,
    cores_per_node: int = 0,
    environment: Mapping[str, str] = os.environ,
) -> Allocation:
    """The first ``nodes`` hosts (None: all) of what there is.

    Raises AllocationError when there are fewer, or none can be found.
    """
    cores = cores_per_node or _cores()
    if virtual:
        names = tuple(f"node{number:02}" for number in range(1, (nodes or 1) + 1))
        return Allocation(names, "virtual nodes of this machine", cores, virtual=True)
    named = environment.get(ORIGIN, "--hosts")
    found, origin = (_expand(hosts), named) if hosts else _from_scheduler(environment)
    if nodes is not None and len(found) < nodes:
        raise AllocationError(
            f"{nodes} nodes asked for, {len(found)} in {origin} ({', '.join(found) or 'none'}): "
            "ask the scheduler for more, or give --hosts or --virtual"
        )
    return Allocation(tuple(found[:nodes]), origin, cores)


def as_allocated(name: str, names: Sequence[str]) -> str:
    """A host's name as the allocation's ``names`` spell it: n1.cluster.example may be n1 to the
    scheduler, or the other way round."""
    same = [known for known in names if known.split(".")[0] == name.split(".")[0]]
    return name if name in names or not same else same[0]


def own_name(names: Sequence[str]) -> str:
    """This host's name as the allocation spells it: Slurm's, or else its own."""
    return as_allocated(os.environ.get("SLURMD_NODENAME") or os.uname().nodename, names)


def own_address(other: str, family: int = 0) -> str:
    """This host's address on the way to another: its own name may mean the loopback to itself.

    ``family`` of socket(2), where it matters. Raises AllocationError where there is no way.
    """
    import socket

    try:
        found, kind, _, _, address = socket.getaddrinfo(other, 9, family, socket.SOCK_DGRAM)[0]
        with socket.socket(found, kind) as way:
            way.connect(address)  # of a datagram socket: sends nothing
            return str(way.getsockname()[0])
    except OSError as error:
        raise AllocationError(
            f"{os.uname().nodename} has no way to {other}: {error.strerror}; let hosts find each "
            "other by the names that the allocation has"
        ) from error


def _from_scheduler(environment: Mapping[str, str]) -> tuple[list[str], str]:
    if path := environment.get("PBS_NODEFILE"):
        return _first_words(path, "PBS_NODEFILE"), "PBS_NODEFILE"
    for variable in ("PE_HOSTFILE", "SGE_JOB_HOSTLIST"):
        if path := environment.get(variable):
            return _first_words(path, variable), variable
    if job := environment.get("SLURM_JOB_ID"):
        return _slurm_hosts(job, environment), "Slurm"
    return [os.uname().nodename], "this host (no scheduler's allocation, no --hosts)"


def _first_words(path: str, variable: str) -> list[str]:
    """Hosts of a node file: PBS repeats a host per process, Grid Engine adds slots and queues."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise AllocationError(f"{variable}={path}: {error.strerror}") from error
    hosts = list(dict.fromkeys(line.split()[0] for line in lines if line.strip()))
    if not hosts:
        raise AllocationError(f"{variable}={path}: the file names no host")
    return hosts


def _slurm_hosts(job: str, environment: Mapping[str, str]) -> list[str]:
    """The job's node list.

    Snakemake's job steps run without SLURM_JOB_NODELIST, and a step on one node sees only that
    one (SLURM_NNODES), so in a step the scheduler is asked for the whole job's.
    """
    names = environment.get("SLURM_JOB_NODELIST", "")
    if not names or environment.get("SLURM_STEP_ID"):
        command = ["squeue", "--noheader", "--jobs", job, "--format", "%N"]
        if shutil.which("squeue"):
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            names = done.stdout.strip() or names
    if not names:
        raise AllocationError(
            f"Slurm job {job}: neither SLURM_JOB_NODELIST nor squeue tells its hosts"
        )
    return _expand(names)


def _expand(names: str) -> list[str]:
    if "[" not in names and "," not in names:
        return names.split()
    from ClusterShell.NodeSet import NodeSet, NodeSetParseError

    try:
        return list(dict.fromkeys(NodeSet(names)))
    except NodeSetParseError as error:
        raise AllocationError(f"host list {names!r}: {error}") from error


def _cores() -> int:
    return len(os.sched_getaffinity(0))
