"""Horovod training with MXNet as a workload of `burstlab run`: mpirun over the hosts of the cell.

Starts MXNET_RANKS processes of train.py on each node and passes on what they say. Where they fail,
failure.txt tells why: what a rank said itself, else what became of it, else of mpirun.
"""

import os
import sys
import time
from pathlib import Path

from parameters import BadParameter, Parameters

from burstlab.doctor import pythons
from burstlab.errors import BurstlabError
from burstlab.launch import ranks
from burstlab.launch.ranks import Unusable
from burstlab.training.images import write_list

TRAIN = Path(__file__).resolve().with_name("train.py")
NAME = "mxnet"  # begins what a rank says of itself


def main() -> int:
    """The exit status of the training; 1 when it can't begin."""
    cell = Path(os.environ["BURSTLAB_CELL_DIR"]).resolve()
    (cell / "ranks.json").unlink(missing_ok=True)  # of an earlier run
    try:
        parameters = Parameters.of(os.environ)
        python = prepare(cell)
        variables = rank_variables(parameters)
        status, why = ranks.run([python, str(TRAIN)], variables, parameters.ranks, NAME)
    except (BadParameter, BurstlabError, OSError) as error:
        status, why = 1, str(error)
        print(f"{NAME}: {why}", file=sys.stderr)
    if status:
        (cell / "failure.txt").write_text(f"{why}\n", encoding="utf-8")
    return status


def prepare(cell: Path) -> str:
    """The ranks' interpreter; their list of images is in the cell's directory.

    Raises Unusable and what the list raises.
    """
    if lacking := pythons.problem("mxnet"):
        raise Unusable(f"{lacking} (make setup, or envs/mxnet/conda.yaml)")
    data = os.environ.get("BURSTLAB_DATA", "")
    if not data:
        raise Unusable("BURSTLAB_DATA: give the directory of the class folders")
    write_list(Path(data), os.environ.get("BURSTLAB_MANIFEST", ""), cell)
    python = pythons.python("mxnet")
    assert python is not None, "its packages were found"
    return python


def rank_variables(parameters: Parameters) -> dict[str, str]:
    """What every rank gets on every host, beside what the cell gives it."""
    readers = parameters.readers or ranks.cores(parameters.ranks)
    return {
        **parameters.variables(),
        "MXNET_READERS": str(readers),
        "MXNET_CPU_WORKER_NTHREADS": str(readers),  # they decode
        "MXNET_STARTED": str(time.time()),
    }


if __name__ == "__main__":
    sys.exit(main())
