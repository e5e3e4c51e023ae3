"""Ranks of an MPI workload: processes that mpirun starts on all hosts of the cell.

For the launchers of workloads (workflows/), which say what a rank runs; what the workload sees of
its cell is in the environment.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from burstlab.errors import BurstlabError
from burstlab.launch import ssh
from burstlab.supervision import ended_how

# Of the first host's environment; which GPUs a scheduler has given may differ from host to host.
PASSED_ON = re.compile(
    r"(?!CUDA_VISIBLE_DEVICES)(PATH|LD_LIBRARY_PATH|GFARM_CONFIG_FILE|"
    r"(BURSTLAB|CHAINER|CHAINERMN|CUDA|CUPY|GLOO|HOROVOD|KMP|MKL|MXNET|NCCL|OMP|OPENBLAS|TORCH|UCX)"
    r"_.*)"
)
# What mpirun says of a process that a signal ended, and of a host that is gone.
KILLED = re.compile(r"process rank (\d+) with PID \d+ on node \S+ exited on signal (\d+)")
LOST = re.compile(r"lost communication with a remote daemon.*?Remote daemon: \S+ on node (\S+)")


class Unusable(BurstlabError):
    """What ranks lack, in one line."""


def hosts() -> list[str]:
    """The hosts of the cell; virtual nodes have one name in common."""
    return Path(os.environ["BURSTLAB_HOSTFILE"]).read_text(encoding="utf-8").split()


def cores(per_host: int) -> int:
    """A rank's share of its node's processors."""
    return max(1, int(os.environ.get("BURSTLAB_CORES", "1")) // per_host)


def run(
    argv: Sequence[str], variables: Mapping[str, str], per_host: int, name: str
) -> tuple[int, str]:
    """Run ``argv`` as so many ranks on each host of the cell, and pass on what they say.

    A rank finds its host's name in BURSTLAB_HOST, the cell's directory in BURSTLAB_CELL_DIR; where
    it says why it fails, the line begins with ``name`` and a colon. Returns the exit status as a
    shell gives it, and why it is not 0. Raises Unusable where there is no mpirun.
    """
    where = [host for host in hosts() for _ in range(per_host)]
    child = subprocess.Popen(
        command(argv, variables, per_host),
        # With the steps that burstlab has on the same hosts, where mpirun calls srun.
        env={**os.environ, "SLURM_OVERLAP": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    said = []
    assert child.stdout is not None
    for line in child.stdout:
        print(line, end="", flush=True)
        said.append(line.rstrip("\n"))
    status = child.wait()
    shell = 128 - status if status < 0 else status
    return shell, reason(said, status, where, f"{name}: ") if status else ""


def command(argv: Sequence[str], variables: Mapping[str, str], per_host: int) -> list[str]:
    """mpirun's words. Raises Unusable."""
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise Unusable("no mpirun on PATH (envs/openmpi)")
    environment = {
        **{name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)},
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(cores(per_host))),
        "BURSTLAB_CELL_DIR": str(Path(os.environ["BURSTLAB_CELL_DIR"]).resolve()),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        **variables,
    }
    return [mpirun, *options(), *_contexts(argv, environment, per_host)]


def options() -> list[str]:
    """How mpirun reaches the other hosts: as the cell does.

    What it keeps on a host goes into the cell's directory there, which is removed whatever happens.
    """
    words = ["--oversubscribe", "--bind-to", "none", "--map-by", "slot"]
    words += ["--mca", "mpi_yield_when_idle", "1"]  # readers want the cores of ranks that wait
    if os.getuid() == 0:
        words.append("--allow-run-as-root")
    if local := os.environ.get("BURSTLAB_LOCAL"):
        for name in ("orte_tmpdir_base", "btl_vader_backing_directory"):
            words += ["--mca", name, local]
    launch = os.environ.get("BURSTLAB_LAUNCH", "local")
    given = shlex.split(os.environ.get("BURSTLAB_LAUNCH_OPTIONS", ""))
    if launch == "ssh":
        agent = _split_at(" :", "plm_rsh_agent", ["ssh", *ssh.OPTIONS, *given])
        return [*words, "--mca", "plm", "rsh", *agent]
    if launch == "srun":
        return [*words, "--mca", "plm", "slurm", *_split_at(" ", "plm_slurm_args", given)]
    return [*words, *given]


def _split_at(signs: str, name: str, given: Sequence[str]) -> list[str]:
    """A parameter of Open MPI 4's that holds words. It splits them itself and knows no quotes; at a
    colon begins another agent. Raises Unusable for a word that would be torn.
    """
    for word in given:
        if not word or any(sign in word for sign in signs):
            told = " or ".join(f"'{sign}'" for sign in signs)
            raise Unusable(
                f"--launch-option {word!r}: mpirun can't have it: {name} is split at {told}"
            )
    return ["--mca", name, " ".join(given)]


def _contexts(argv: Sequence[str], environment: Mapping[str, str], per_host: int) -> Iterator[str]:
    """The ranks of each host in the hosts' order, each with an environment of its own.

    On another host, burstlab's agent knows the processes of a cell by its name and the host's.
    """
    names = hosts()
    for number, host in enumerate(names):
        if number:
            yield ":"
        own = {**environment, "BURSTLAB_HOST": host}
        if number and host != names[0] and "BURSTLAB_CELL" in own:
            own["BURSTLAB_CELL"] += f".{host}"
        yield from ("--host", f"{host}:{per_host}", "-np", str(per_host))
        yield from ("env", *(f"{name}={value}" for name, value in own.items()))
        yield from (*shlex.split(os.environ.get("BURSTLAB_TRACE", "")), *argv)


def reason(said: Sequence[str], status: int, where: Sequence[str], own: str) -> str:
    """Why it failed: what mpirun tells of ranks and hosts, or the first rank's own words.

    ``where`` is the host of each rank. The other ranks may have words of their own, on what the
    first one's death did to them.
    """
    told = " ".join(" ".join(said).split())
    if killed := KILLED.search(told):
        return f"rank {killed[1]} on {where[int(killed[1])]} was {ended_how(-int(killed[2]))}"
    if lost := LOST.search(told):
        return f"mpirun lost {lost[1]}"
    for line in said:
        if line.startswith(own):
            return line.removeprefix(own)
    words = [line for line in said if line.strip("- ")]
    how = f"mpirun: {ended_how(status)}"
    return f"{how}: {words[-1].strip()}" if words and status > 0 else how
