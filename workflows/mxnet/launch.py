"""Horovod on MXNet as a workload of `burstlab run`: MXNET_RANKS processes on each node."""

import sys
from collections.abc import Mapping
from pathlib import Path

from parameters import Parameters

from burstlab.launch import ranks
from burstlab.training.launch import main


def variables(chosen: Parameters) -> Mapping[str, str]:
    """What every rank gets on every host, beside its parameters."""
    readers = str(chosen.readers or ranks.cores(chosen.ranks))
    return {"MXNET_READERS": readers, "MXNET_CPU_WORKER_NTHREADS": readers}  # they decode


if __name__ == "__main__":
    train = Path(__file__).resolve().with_name("train.py")
    sys.exit(main("mxnet", "mxnet", train, Parameters, variables))
