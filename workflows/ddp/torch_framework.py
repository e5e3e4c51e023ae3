"""PyTorch's DistributedDataParallel: GPUs and NCCL where there are any, else processors and gloo.

DDP hides its all-reduce behind backward. Here its communication hook only keeps each bucket of
gradients until backward is done, so that both are timed, and overlap as little as in ChainerMN.
"""

import atexit
import hashlib
import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from mpi4py import MPI
from networks import network
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from burstlab.pipelines import Images, Minibatches, Mode, Options, open_pipeline
from burstlab.training.loop import SEED
from burstlab.training.mpi import Ranks
from burstlab.training.parameters import Parameters
from burstlab.training.rank import Deserted
from burstlab.training.schedule import DECAY, MOMENTUM


class TorchLearner:
    """A network under DDP, whose step is taken in parts to be timed."""

    def __init__(self, chosen: Parameters, classes: int, ranks: int, device: torch.device) -> None:
        torch.manual_seed(SEED)
        self._ranks, self._device = ranks, device
        self.network = network(chosen.network, classes).to(device)
        with torch.no_grad():
            self.network.eval()(torch.zeros(1, 3, chosen.side, chosen.side, device=device))
        # Running means stay each rank's own; gradients are views of the buckets, so what is done to
        # these after backward is done to them.
        own = {_of_buffers(): False, "gradient_as_bucket_view": True}
        with _all_together():
            self._parallel = DistributedDataParallel(self.network.train(), **own)
        self._buckets: list[torch.Tensor] = []
        self._parallel.register_comm_hook(None, self._keep)
        self._optimizer = torch.optim.SGD(
            self.network.parameters(), momentum=MOMENTUM, weight_decay=DECAY
        )

    def put(self, pictures: Any, labels: Any) -> None:
        self._pictures = torch.from_numpy(pictures).to(self._device)
        self._labels = torch.from_numpy(labels).long().to(self._device)

    def forward(self) -> None:
        self._told = self._parallel(self._pictures)
        self._loss = F.cross_entropy(self._told, self._labels)

    def backward(self) -> None:
        self._optimizer.zero_grad()
        self._loss.backward()

    def allreduce(self) -> None:
        with _all_together():
            sent = [dist.all_reduce(bucket, async_op=True) for bucket in self._buckets]
            for one in sent:
                one.wait()
        for bucket in self._buckets:
            bucket /= self._ranks
        self._buckets.clear()

    def update(self, rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()

    def synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()

    def outcome(self) -> tuple[float, int]:
        return float(self._loss.detach()), self._right(self._told)

    def evaluate(self, pictures: Any, labels: Any) -> int:
        self.put(pictures, labels)
        self.network.eval()
        with torch.no_grad():
            right = self._right(self.network(self._pictures))
        self.network.train()
        return right

    def _right(self, told: torch.Tensor) -> int:
        return int((told.argmax(dim=1) == self._labels).sum())

    def _keep(self, _: None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        self._buckets.append(bucket.buffer())
        kept: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        kept.set_result(bucket.buffer())
        return kept


class TorchFramework:
    """See ``burstlab.training.rank.Framework``."""

    def __init__(self) -> None:
        # The optimizer brings in a compiler, which has a directory in /tmp and leaves it there.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{os.environ['BURSTLAB_LOCAL']}/torch"
        self.group = Ranks(MPI.COMM_WORLD)
        self._device = torch.device("cpu")
        if torch.cuda.is_available():
            of_this_host = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
            self._device = torch.device("cuda", of_this_host.Get_rank())
            torch.cuda.set_device(self._device)
        self._backend = "gloo" if self._device.type == "cpu" else "nccl"
        rank, ranks = self.group.rank, self.group.size
        dist.init_process_group(self._backend, store=_meet(self.group), rank=rank, world_size=ranks)
        atexit.register(dist.destroy_process_group)

    def learner(self, chosen: Parameters, classes: int) -> TorchLearner:
        return TorchLearner(chosen, classes, self.group.size, self._device)

    def batches(self, files: Images, chosen: Parameters, how: Options) -> Minibatches:
        def order(epoch: int) -> Any:
            return np.random.RandomState([SEED, self.group.rank, epoch]).permutation(len(files))

        pipeline = open_pipeline(cast(Mode, chosen.mode), files, how)
        return Minibatches(pipeline, order, chosen.batch, across_epochs=True)

    def checksum(self, learner: TorchLearner) -> str:
        found = hashlib.sha256()
        for _, parameter in sorted(learner.network.named_parameters()):
            found.update(parameter.detach().cpu().numpy().tobytes())
        return found.hexdigest()

    def facts(self) -> dict[str, str]:
        return {
            "engine": f"PyTorch {torch.__version__}",
            "collectives": f"DDP {self._backend}",
            "device": "cpu" if self._device.type == "cpu" else "gpu",
        }


@contextmanager
def _all_together() -> Iterator[None]:
    """What no rank can end without all others. Raises Deserted where it fails for this one.

    Of gloo's and NCCL's failures some have no class of their own.
    """
    try:
        yield
    except torch.cuda.OutOfMemoryError:  # this rank's own matter
        raise
    except RuntimeError as error:
        raise Deserted(str(error)) from error


def _of_buffers() -> str:
    """What DDP calls it to make running means equal before each forward, by default: the older
    name is deprecated where there is a newer one."""
    newer = "forward_sync_buffers"
    known = inspect.signature(DistributedDataParallel).parameters
    return newer if newer in known else "broadcast_buffers"


def _meet(group: Ranks) -> dist.TCPStore:
    """Where the ranks find one another: a port of the first host that its system gives."""
    own = None
    if group.rank == 0:
        host = os.environ["BURSTLAB_HOST"]
        own = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False)
    at = group.broadcast((own.host, own.port) if own else None)
    return own or dist.TCPStore(*at, is_master=False)
