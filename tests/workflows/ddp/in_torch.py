"""What ranks in PyTorch's own Python check: ``mpirun -np 2 python -m`` this module."""

import copy
from typing import Any

import numpy as np
import torch
import torch_framework
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch_framework import TorchFramework

from burstlab.training.parameters import Parameters
from burstlab.training.rank import Deserted

SIDE, BATCH, CLASSES = 32, 2, 10
WEIGHTS = {"resnet50": 25_557_032, "small": 3 * 16 * 9 + 16 + 16 * 32 * 9 + 32 + 128 * 10 + 10}


def check_gradients(framework: TorchFramework, name: str) -> None:
    """They are the mean of those that each rank gets without DDP, before and after it has sorted
    its buckets anew, and the ranks remain equal."""
    learner = framework.learner(Parameters(network=name, side=SIDE, batch=BATCH), CLASSES)
    weights = list(learner.network.parameters())
    assert sum(weight.numel() for weight in weights) == WEIGHTS[name]
    random = np.random.RandomState(framework.group.rank)
    for step in range(3):
        pictures = random.rand(BATCH, 3, SIDE, SIDE).astype(np.float32)
        labels = random.randint(CLASSES, size=BATCH).astype(np.int32)
        twin = copy.deepcopy(learner.network)
        twin.zero_grad()
        device = weights[0].device
        told = twin(torch.from_numpy(pictures).to(device))
        F.cross_entropy(told, torch.from_numpy(labels).long().to(device)).backward()
        learner.put(pictures, labels)
        learner.forward()
        learner.backward()
        learner.allreduce()
        own = [weight.grad.cpu().numpy() for weight in twin.parameters()]
        everyones = framework.group.broadcast(framework.group.gather(own))
        assert not np.allclose(everyones[0][-1], everyones[1][-1]), "each has images of its own"
        for number, gradients in enumerate(zip(*everyones, strict=True)):
            wanted, found = np.mean(gradients, axis=0), weights[number].grad.cpu().numpy()
            scale = np.abs(wanted).max()
            assert np.allclose(found, wanted, rtol=1e-3, atol=1e-4 * scale), (name, step, number)
        learner.update(0.01)
    sums = framework.group.gather(framework.checksum(learner))
    assert sums is None or len(set(sums)) == 1, name


class Older(DistributedDataParallel):
    """With the one name for it that PyTorch had before."""

    def __init__(
        self,
        module: nn.Module,
        *,
        broadcast_buffers: bool = True,
        gradient_as_bucket_view: bool = False,
    ) -> None:
        assert not broadcast_buffers, "running means stay each rank's own"
        super().__init__(
            module,
            broadcast_buffers=broadcast_buffers,
            gradient_as_bucket_view=gradient_as_bucket_view,
        )


def check_failures(framework: TorchFramework, error: Exception, told: type[Exception]) -> None:
    """Of what all ranks do together: ``error`` is told as ``told``, whoever meets it."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    chosen = Parameters(network="small", side=SIDE, batch=BATCH)
    learner = framework.learner(chosen, CLASSES)
    learner.put(np.zeros((BATCH, 3, SIDE, SIDE), np.float32), np.zeros(BATCH, np.int32))
    learner.forward()
    learner.backward()
    whole = DistributedDataParallel.__init__, torch_framework.dist.all_reduce
    for act in (learner.allreduce, lambda: framework.learner(chosen, CLASSES)):
        DistributedDataParallel.__init__ = torch_framework.dist.all_reduce = fail
        try:
            act()
        except Exception as met:
            assert type(met) is told and str(met) == str(error), repr(met)
        else:
            raise AssertionError(f"{error!r} was not told")
        finally:
            DistributedDataParallel.__init__, torch_framework.dist.all_reduce = whole


if __name__ == "__main__":
    made = TorchFramework()
    for network in WEIGHTS:
        check_gradients(made, network)
    check_failures(made, RuntimeError("Connection closed by peer"), Deserted)
    full = torch.cuda.OutOfMemoryError("no memory")
    check_failures(made, full, type(full))
    torch_framework.DistributedDataParallel = Older
    check_gradients(made, "small")
