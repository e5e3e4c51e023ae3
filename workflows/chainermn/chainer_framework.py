"""Chainer with ChainerMN: GPUs and NCCL where there are any, else processors and MPI."""

import hashlib
import warnings
from typing import Any

import chainer
import chainermn
import numpy as np
from chainer import functions as F
from chainer.backends import cuda
from networks import network

from burstlab.pipelines import Images, Options
from burstlab.pipelines.chainer import PipelineIterator, TimeoutWarning
from burstlab.training.loop import SEED
from burstlab.training.mpi import Ranks
from burstlab.training.parameters import Parameters
from burstlab.training.schedule import DECAY, MOMENTUM


class ChainerLearner:
    """What chainermn's multi-node optimizer does in one call, step by step to be timed."""

    def __init__(self, chosen: Parameters, classes: int, communicator: Any, device: Any) -> None:
        np.random.seed(SEED)
        self.network = network(chosen.network, classes)
        self._communicator, self._device = communicator, device
        self._network_on_device(chosen.side)
        self._optimizer = chainer.optimizers.MomentumSGD(momentum=MOMENTUM)
        self._optimizer.setup(self.network)
        self._optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(DECAY))

    def put(self, pictures: Any, labels: Any) -> None:
        self._pictures, self._labels = self._device.send((pictures, labels))

    def forward(self) -> None:
        self._told = self.network(self._pictures)
        self._loss = F.softmax_cross_entropy(self._told, self._labels)

    def backward(self) -> None:
        self.network.cleargrads()
        self._loss.backward()

    def allreduce(self) -> None:
        self._communicator.multi_node_mean_grad(self.network)

    def update(self, rate: float) -> None:
        self._optimizer.lr = rate
        self._optimizer.update()

    def synchronize(self) -> None:
        if self._device.xp is not np:
            cuda.Stream.null.synchronize()

    def outcome(self) -> tuple[float, int]:
        return float(self._loss.array), self._right(self._told.array)

    def evaluate(self, pictures: Any, labels: Any) -> int:
        self.put(pictures, labels)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return self._right(self.network(self._pictures).array)

    def _right(self, told: Any) -> int:
        return int((told.argmax(axis=1) == self._labels).sum())

    def _network_on_device(self, side: int) -> None:
        """Linear layers know their size once they have seen a picture."""
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            self.network(np.zeros((1, 3, side, side), np.float32))
        self.network.to_device(self._device)
        self._communicator.bcast_data(self.network)


class ChainerFramework:
    """See ``burstlab.training.rank.Framework``."""

    def __init__(self) -> None:
        nccl = bool(cuda.available)
        self._name = "pure_nccl" if nccl else "naive"
        self._communicator = chainermn.create_communicator(self._name)
        self._device = chainer.get_device(
            f"@cupy:{self._communicator.intra_rank}" if nccl else "@numpy"
        )
        self._device.use()
        self.group = Ranks(self._communicator.mpi_comm)

    def learner(self, chosen: Parameters, classes: int) -> ChainerLearner:
        return ChainerLearner(chosen, classes, self._communicator, self._device)

    def batches(self, files: Images, chosen: Parameters, how: Options) -> PipelineIterator:
        np.random.seed([SEED, self.group.rank])  # the iterator's order is drawn from it
        warnings.simplefilter("error", TimeoutWarning)  # or the training would wait for ever
        return PipelineIterator(
            files,
            chosen.batch,
            n_processes=how.workers,
            dataset_timeout=how.time_limit_s,
            mode=chosen.mode,
            local=how.local,
            copiers=how.copiers,
            agent=how.agent,
        )

    def checksum(self, learner: ChainerLearner) -> str:
        found = hashlib.sha256()
        for _, parameter in sorted(learner.network.namedparams()):
            found.update(cuda.to_cpu(parameter.array).tobytes())
        return found.hexdigest()

    def facts(self) -> dict[str, str]:
        on_gpu = self._name == "pure_nccl"
        return {
            "engine": f"Chainer {chainer.__version__}",
            "collectives": f"ChainerMN {self._name}",
            "device": "gpu" if on_gpu else "cpu",
        }
