"""What MXNet trains and how, with the values of Sawada's paper as defaults."""

from dataclasses import dataclass
from typing import ClassVar

from burstlab.training.parameters import AnyParameters


@dataclass(frozen=True)
class Parameters(AnyParameters):
    """MXNET_NAME of the environment; ``readers`` are those of each rank."""

    ALLOWED: ClassVar = {"format": ("recordio", "jpeg"), "collectives": ("mpi", "gloo")}
    MAY_BE_ZERO = ("readers",)

    network: str = "resnet50_v1"  # a name of mxnet.gluon.model_zoo.vision
    format: str = "recordio"
    batch: int = 128
    epochs: int = 2
    ranks: int = 1
    collectives: str = "mpi"  # over what gradients go between processors
    readers: int = 0  # threads that read and decode; 0: a rank's share of the cores
