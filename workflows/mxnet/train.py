"""One rank of a data-parallel training on MXNet with Horovod; launch.py starts all of them.

The times are those of the epochs alone: the start of the processes, the packing of record files and
the first pass through the network, which compiles it, come before. Every minibatch is waited for
before the next, so that the time without data can be told from the time of computing.
"""

import hashlib
import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import horovod.mxnet as hvd
import mxnet as mx
from meeting import NoGloo, interface
from mxnet import autograd, gluon
from mxnet.gluon.model_zoo import vision
from parameters import Parameters
from reading import JpegFiles, RecordIO
from share import Image, Share

from burstlab.training.images import LIST, check_folders, listed
from burstlab.training.rank import Deserted, TooFew, guarded
from burstlab.training.schedule import DECAY, MOMENTUM, RATE, RATE_BATCH, WARM_UP
from report import write_report

SEED = 7
# What Horovod and gloo say where another rank is gone, whichever of them meets it first.
GONE = ("Horovod has been shut down", "Connection reset by peer", "Connection closed by peer")
GONE += ("Broken pipe",)


def main() -> None:
    """Train, and leave what rank 0 reports in BURSTLAB_CELL_DIR."""
    began, chosen = time.time(), Parameters.of("mxnet", os.environ)
    if chosen.collectives == "gloo":
        meet_by_gloo()
    hvd.init()
    device = mx.gpu(hvd.local_rank()) if mx.context.num_gpus() else mx.cpu()
    share = Share(hvd.rank(), hvd.size(), images())
    if share.steps(chosen.batch) == 0:
        wanted = hvd.size() * chosen.batch
        raise TooFew(
            f"{len(share.images)} images: fewer than the {wanted} of a minibatch on each rank"
        )
    data = Path(os.environ["BURSTLAB_DATA"])
    check_folders(data, [image.path for image in share.images])
    ready = time.time()
    if chosen.format == "recordio":
        batches: Any = RecordIO(data, share, chosen, Path(os.environ["BURSTLAB_MOUNT"]))
    else:
        batches = JpegFiles(data, share, chosen)
    packed = time.time()
    training = Training(chosen, share, device)
    hvd.allreduce(mx.nd.zeros(1)).wait_to_read()  # all begin at once
    started = float(os.environ["BURSTLAB_RANKS_STARTED"])
    mine: dict[str, Any] = {
        "rank": hvd.rank(),
        "host": os.environ["BURSTLAB_HOST"],
        "pack": [ready, packed - ready],
        "epochs": [training.epoch(batches, number) for number in range(chosen.epochs)],
        "sha256": training.checksum(),
    }
    everyones = hvd.allgather_object(mine, name="reports")
    if hvd.rank() == 0:
        collectives = "gloo" if hvd.gloo_enabled() else "MPI"
        if mx.context.num_gpus() and hvd.nccl_built():
            collectives = "NCCL"
        about = {
            "device": str(device.device_type),
            "engine": f"MXNet {mx.__version__}, Horovod {version('horovod')}, {collectives}",
            "started": [started, began],
        }
        write_report(Path(os.environ["BURSTLAB_CELL_DIR"]), chosen, share, everyones, about)


def outlived() -> None:
    """Train. Raises Deserted where other ranks are gone, of which a rank is told over gloo."""
    try:
        main()
    except mx.base.MXNetError as error:
        if any(words in str(error) for words in GONE):
            raise Deserted(str(error).splitlines()[-1]) from error  # the first is "Traceback"
        raise


def meet_by_gloo() -> None:
    """Tell Horovod what mpirun knows of this rank, and by which network interface gloo is to go."""
    if not hvd.gloo_built():
        raise NoGloo("collectives gloo: this Horovod was compiled without (HOROVOD_WITH_GLOO=1)")
    rank, size, local_rank, local_size = (
        int(os.environ[f"OMPI_COMM_WORLD_{name}"])
        for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    )
    host = os.environ["BURSTLAB_HOST"]
    first, last = os.environ["MXNET_HOSTS"].split()
    told = {
        "HOSTNAME": host,
        "RANK": rank,
        "SIZE": size,
        "LOCAL_RANK": local_rank,
        "LOCAL_SIZE": local_size,
        "CROSS_RANK": rank // local_size,  # all hosts have as many ranks, one host after another
        "CROSS_SIZE": size // local_size,
        "GLOO_IFACE": interface(host, last if host == first else first),
    }
    os.environ.update({f"HOROVOD_{name}": str(value) for name, value in told.items()})


class Training:
    """The network of one rank, equal to all others' before the first step and after each."""

    def __init__(self, chosen: Parameters, share: Share, device: mx.Context) -> None:
        self._chosen, self._share, self._device = chosen, share, device
        self._steps_done = 0
        mx.random.seed(SEED)
        classes = max(image.label for image in share.images) + 1
        self._network = vision.get_model(chosen.network, classes=classes)
        self._network.initialize(mx.init.Xavier(), ctx=device)
        self._network.hybridize(static_alloc=True)
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss()
        shape = (chosen.batch, 3, chosen.side, chosen.side)
        self._gradients(mx.nd.zeros(shape, ctx=device), mx.nd.zeros(chosen.batch, ctx=device))
        mx.nd.waitall()
        parameters = self._network.collect_params()
        hvd.broadcast_parameters(parameters, root_rank=0)
        self._trained = {n: p for n, p in sorted(parameters.items()) if p.grad_req != "null"}
        sgd = mx.optimizer.create("sgd", momentum=MOMENTUM, wd=DECAY)
        self._trainer = hvd.DistributedTrainer(parameters, sgd)

    def epoch(self, batches: Any, number: int) -> dict[str, Any]:
        """Train on every minibatch of an epoch; what it took [s], and the loss."""
        start_s, begun_s = time.time(), time.monotonic()
        waits_s, losses = [], []
        minibatches = batches.epoch(number)
        for _ in range(self._share.steps(self._chosen.batch)):
            asked_s = time.monotonic()
            pictures, labels = next(minibatches)
            waits_s.append(time.monotonic() - asked_s)
            losses.append(self._step(pictures, labels))
        hvd.allreduce(mx.nd.zeros(1)).wait_to_read()  # until the last of them is there
        elapsed_s = time.monotonic() - begun_s
        if self._share.rank == 0:
            told = f"{elapsed_s:.2f} s, of which {sum(waits_s):.2f} s without a minibatch"
            print(f"epoch {number + 1} of {self._chosen.epochs}: {told}", flush=True)
        return {
            "start_s": start_s,
            "elapsed_s": elapsed_s,
            "wait_s": sum(waits_s),
            "first_wait_s": waits_s[0],
            "images": len(losses) * self._chosen.batch,
            "losses": [losses[0], losses[-1]],
        }

    def checksum(self) -> str:
        """SHA-256 of all trained parameters, in the order of their names."""
        found = hashlib.sha256()
        for parameter in self._trained.values():
            found.update(parameter.data(self._device).asnumpy().tobytes())
        return found.hexdigest()

    def _step(self, pictures: Any, labels: Any) -> float:
        loss = self._gradients(
            mx.nd.array(pictures, ctx=self._device), mx.nd.array(labels, ctx=self._device)
        )
        self._trainer.set_learning_rate(self._rate())
        self._trainer.step(self._chosen.batch)
        next(iter(self._trained.values())).data(self._device).wait_to_read()
        self._steps_done += 1
        return float(loss.mean().asscalar())

    def _gradients(self, pictures: mx.nd.NDArray, labels: mx.nd.NDArray) -> mx.nd.NDArray:
        with autograd.record():
            loss = self._loss(self._network(pictures), labels)
        loss.backward()
        return loss

    def _rate(self) -> float:
        whole = RATE * self._chosen.batch * self._share.ranks / RATE_BATCH
        warm_up = WARM_UP * self._share.steps(self._chosen.batch)
        return whole * min(1.0, (self._steps_done + 1) / warm_up)


def images() -> list[Image]:
    """All images, as rank 0 reads them from launch.py's list."""
    text = None
    if hvd.rank() == 0:
        text = Path(os.environ["BURSTLAB_CELL_DIR"], LIST).read_text(encoding="utf-8")
    # Without a name it would be called by the type of what each rank has, and wait for ever.
    text = hvd.broadcast_object(text, root_rank=0, name="images")
    return [Image(path, label) for path, label in listed(text)]


if __name__ == "__main__":
    guarded("mxnet", outlived)
