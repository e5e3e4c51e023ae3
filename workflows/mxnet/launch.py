"""Horovod on MXNet as a workload of `burstlab run`: MXNET_RANKS processes on each node."""

import sys
from collections.abc import Mapping
from pathlib import Path

from meeting import meet
from parameters import Parameters

from burstlab.launch import ranks
from burstlab.training.launch import main


def variables(chosen: Parameters) -> Mapping[str, str]:
    """What every rank gets on every host, beside its parameters."""
    readers = str(chosen.readers or ranks.cores(chosen.ranks))
    own = {"MXNET_READERS": readers, "MXNET_CPU_WORKER_NTHREADS": readers}  # they decode
    own |= dict.fromkeys(("HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS"), chosen.collectives)
    if chosen.collectives == "gloo":
        hosts = ranks.hosts()
        address, port = meet(hosts[-1])
        own |= {"HOROVOD_GLOO_RENDEZVOUS_ADDR": address, "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port)}
        own["MXNET_HOSTS"] = f"{hosts[0]} {hosts[-1]}"
    return own


if __name__ == "__main__":
    train = Path(__file__).resolve().with_name("train.py")
    sys.exit(main("mxnet", train, Parameters, variables))
