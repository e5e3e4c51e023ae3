"""Horovod training with MXNet as a workload of `burstlab run`: mpirun over the hosts of the cell.

Starts MXNET_RANKS processes of train.py on each node and passes on what they say. Where they fail,
failure.txt tells why: what a rank said itself, else what became of it, else of mpirun.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from images import NoImages, write_list
from parameters import BadParameter, Parameters

from burstlab.doctor import pythons
from burstlab.errors import BurstlabError
from burstlab.supervision import ended_how

HERE = Path(__file__).resolve().parent
PASSED_ON = re.compile(r"(PATH|LD_LIBRARY_PATH|GFARM_CONFIG_FILE|(BURSTLAB|HOROVOD|NCCL|UCX)_.*)")
# What mpirun says of a process that a signal ended, and of a host that is gone.
KILLED = re.compile(r"process rank (\d+) with PID \d+ on node \S+ exited on signal (\d+)")
LOST = re.compile(r"lost communication with a remote daemon.*?Remote daemon: \S+ on node (\S+)")
OWN = "mxnet: "  # what a rank says of itself


class Unusable(Exception):
    """What is missing, in one line."""


def main() -> int:
    """The exit status of the training; 1 when it can't begin."""
    cell = Path(os.environ["BURSTLAB_CELL_DIR"]).resolve()
    (cell / "ranks.json").unlink(missing_ok=True)  # of an earlier run
    try:
        parameters = Parameters.of(os.environ)
        hosts = Path(os.environ["BURSTLAB_HOSTFILE"]).read_text(encoding="utf-8").split()
        command = training(parameters, hosts, cell)
        status, why = run(command, [host for host in hosts for _ in range(parameters.ranks)])
    except (Unusable, BadParameter, NoImages, BurstlabError, OSError) as error:
        status, why = 1, str(error)
        print(f"{OWN}{why}", file=sys.stderr)
    if status:
        (cell / "failure.txt").write_text(f"{why}\n", encoding="utf-8")
    return status


def training(parameters: Parameters, hosts: Sequence[str], cell: Path) -> list[str]:
    """The command that trains. Raises Unusable and what the list of images raises."""
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise Unusable("no mpirun on PATH (envs/mxnet)")
    if lacking := pythons.problem("mxnet"):
        raise Unusable(f"{lacking} (make setup, or envs/mxnet/conda.yaml)")
    data = os.environ.get("BURSTLAB_DATA", "")
    if not data:
        raise Unusable("BURSTLAB_DATA: give the directory of the class folders")
    write_list(Path(data), os.environ.get("BURSTLAB_MANIFEST", ""), cell)
    environment = rank_environment(parameters, cell)
    return [mpirun, *options(), *contexts(hosts, parameters.ranks, environment)]


def rank_environment(parameters: Parameters, cell: Path) -> dict[str, str]:
    """What every rank gets on every host."""
    cores = max(1, int(os.environ.get("BURSTLAB_CORES", "1")) // parameters.ranks)
    readers = parameters.readers or cores
    return {
        **{name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)},
        **parameters.variables(),
        "MXNET_READERS": str(readers),
        "MXNET_CPU_WORKER_NTHREADS": str(readers),  # they decode
        "MXNET_STARTED": str(time.time()),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(cores)),
        "BURSTLAB_CELL_DIR": str(cell),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def options() -> list[str]:
    """How mpirun reaches the other hosts: as the cell does.

    What it keeps on a host goes into the cell's directory there, which is removed whatever happens.
    """
    words = ["--oversubscribe", "--bind-to", "none", "--map-by", "slot"]
    if os.getuid() == 0:
        words.append("--allow-run-as-root")
    if local := os.environ.get("BURSTLAB_LOCAL"):
        for name in ("orte_tmpdir_base", "btl_vader_backing_directory"):
            words += ["--mca", name, local]
    launch = os.environ.get("BURSTLAB_LAUNCH", "local")
    given = shlex.split(os.environ.get("BURSTLAB_LAUNCH_OPTIONS", ""))
    if launch == "ssh":
        agent = shlex.join(["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *given])
        return [*words, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent]
    if launch == "srun":
        return [*words, "--mca", "plm", "slurm", "--mca", "plm_slurm_args", shlex.join(given)]
    return [*words, *given]


def contexts(hosts: Sequence[str], ranks: int, environment: Mapping[str, str]) -> Iterator[str]:
    """The ranks of each host in the hosts' order, each with an environment of its own.

    On another host, burstlab's agent knows the processes of a cell by its name and the host's.
    """
    python = pythons.python("mxnet")
    assert python is not None, "its packages were found"
    for number, host in enumerate(hosts):
        if number:
            yield ":"
        own = {**environment, "MXNET_HOST": host}
        if number and host != hosts[0] and "BURSTLAB_CELL" in own:
            own["BURSTLAB_CELL"] += f".{host}"
        words = [f"{name}={value}" for name, value in own.items()]
        yield from ("--host", f"{host}:{ranks}", "-np", str(ranks))
        yield from ("env", *words, python, str(HERE / "train.py"))


def run(command: list[str], where: Sequence[str]) -> tuple[int, str]:
    """Exit status as a shell gives it, and why it is not 0; ``where`` is the host of each rank."""
    # With the steps that burstlab has on the same hosts, where mpirun calls srun.
    environment = {**os.environ, "SLURM_OVERLAP": "1"}
    child = subprocess.Popen(
        command,
        env=environment,
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
    return 128 - status if status < 0 else status, reason(said, status, where) if status else ""


def reason(said: Sequence[str], status: int, where: Sequence[str]) -> str:
    """Why it failed: what mpirun tells of ranks and hosts, or the first rank's own words.

    The others may have words of their own, on what its death did to them.
    """
    told = " ".join(" ".join(said).split())
    if killed := KILLED.search(told):
        return f"rank {killed[1]} on {where[int(killed[1])]} was {ended_how(-int(killed[2]))}"
    if lost := LOST.search(told):
        return f"mpirun lost {lost[1]}"
    for line in said:
        if line.startswith(OWN):
            return line.removeprefix(OWN)
    words = [line for line in said if line.strip("- ")]
    how = f"mpirun: {ended_how(status)}"
    return f"{how}: {words[-1].strip()}" if words and status > 0 else how


if __name__ == "__main__":
    sys.exit(main())
