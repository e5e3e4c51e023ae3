"""A training as a workload of `burstlab run`: its ranks over the hosts of the cell, its verdict.

Where the ranks fail, failure.txt tells why: what a rank said itself, else what became of it, else
of mpirun.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from burstlab.doctor import pythons
from burstlab.doctor.environments import of_workload
from burstlab.errors import BurstlabError
from burstlab.launch import ranks
from burstlab.launch.ranks import Unusable
from burstlab.training.images import write_list
from burstlab.training.parameters import AnyParameters, Parameters
from burstlab.training.report import RANKS
from burstlab.training.verdict import judge

# Pipelines fork after MPI has begun. InfiniBand has to know (ibv_fork_init(3)); Python's other ways
# to start processes leave semaphores and a directory behind where all of them are killed.
FORKING = {"RDMAV_FORK_SAFE": "1"}


def main(
    workload: str,
    program: Path,
    kind: type[AnyParameters] = Parameters,
    more: Callable[[Any], Mapping[str, str]] = lambda _: FORKING,
) -> int:
    """Run ``program`` with the Python of the workload's environment as every rank.

    ``more`` gives the ranks variables beside their parameters, and BURSTLAB_RANKS_STARTED, the Unix
    time [s]. Returns the exit status; 1 when it can't begin.
    """
    cell = Path(os.environ["BURSTLAB_CELL_DIR"]).resolve()
    (cell / RANKS).unlink(missing_ok=True)  # of an earlier run
    try:
        chosen = kind.of(workload, os.environ)
        python = prepare(cell, of_workload(pythons.ROOT, workload), chosen)
        variables = {**chosen.variables(workload), **more(chosen)}
        variables["BURSTLAB_RANKS_STARTED"] = str(time.time())
        status, why = ranks.run([python, str(program)], variables, chosen.ranks, workload)
    except (BurstlabError, OSError) as error:
        status, why = 1, str(error)
        print(f"{workload}: {why}", file=sys.stderr)
    if status:
        (cell / "failure.txt").write_text(f"{why}\n", encoding="utf-8")
    return status


def prepare(cell: Path, environment: str, chosen: AnyParameters) -> str:
    """The ranks' interpreter; the list of their images is in the cell's directory.

    Raises Unusable and what the list raises.
    """
    if problem := chosen.problem(os.environ.get("BURSTLAB_STORAGE", "")):
        raise Unusable(problem)
    if lacking := pythons.problem(environment):
        raise Unusable(
            f"{lacking} (make setup PARTS={environment}, or conda.yaml in envs/{environment})"
        )
    data = os.environ.get("BURSTLAB_DATA", "")
    if not data:
        raise Unusable("BURSTLAB_DATA: give the directory of the class folders")
    write_list(Path(data), os.environ.get("BURSTLAB_MANIFEST", ""), cell)
    python = pythons.python(environment)
    assert python is not None, "its packages were found"
    return python


def check(workload: str, kind: type[AnyParameters] = Parameters) -> int:
    """Tell the verdict; exit status 1 if the training is wrong."""
    cell = Path(os.environ["BURSTLAB_CELL_DIR"])
    try:
        chosen = kind.of(workload, os.environ)
        told = judge(cell, int(os.environ["BURSTLAB_NODES"]), chosen)
    except (BurstlabError, OSError, ValueError, KeyError) as error:
        print(f"training wrong: {error}")
        return 1
    print(f"training ok: {told}")
    return 0
