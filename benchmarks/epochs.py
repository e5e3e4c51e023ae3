"""One measurement of benchmarks/prefetch.py, in a process of its own: a loop over minibatches.

Its argument is a specification as JSON, its last line of output the result as JSON: seconds from
the making of the pipeline to the first minibatch and of each epoch, CPU seconds of this process
and its children, and the pipeline's counters.
"""

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SIDE = 224  # pixels, as networks for ImageNet want them
Minibatch = Any
Source = Callable[[dict[str, Any]], Iterator[tuple[Minibatch, bool]]]  # and whether an epoch ends


def measure(specification: dict[str, Any]) -> dict[str, Any]:
    """Run the loop and time it."""
    result: dict[str, Any] = {"epochs_s": [], "statistics": {}}
    for module in IMPORTED[specification["source"]]:
        importlib.import_module(module)  # every program has these to import, or others as large
    cpu, began = cpu_seconds(), time.monotonic()
    epoch_began = began
    most = specification.get("minibatches")
    minibatches = SOURCES[specification["source"]]({**specification, "result": result})
    for taken, (_, epoch_ends) in enumerate(minibatches, 1):
        now = time.monotonic()
        result.setdefault("first_s", now - began)
        time.sleep(specification.get("compute_s", 0.0))  # a device computes
        if epoch_ends:
            now = time.monotonic()
            result["epochs_s"].append(now - epoch_began)
            epoch_began = now
        if taken == most:
            break
    result["elapsed_s"] = time.monotonic() - began
    minibatches.close()  # type: ignore[attr-defined]  # all of them are generators
    result["cpu_s"] = cpu_seconds() - cpu
    return result


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def pipeline(specification: dict[str, Any]) -> Iterator[tuple[Minibatch, bool]]:
    """One of burstlab's modes."""
    import burstio

    from burstlab.pipelines import Minibatches, Options, open_pipeline

    files = data_set(specification)
    options = dict(specification.get("options", {}))
    for name in ("local", "agent"):
        if name in options:
            options[name] = Path(options[name])
    if in_flight := options.get("engine", {}).get("in_flight"):
        options["engine"]["in_flight"] = tuple(in_flight)
    rank, ranks = specification.get("rank", (0, 1))
    shard = burstio.Shard(rank, ranks, reshuffled=True) if ranks > 1 else None
    order = burstio.shuffled(len(files), specification["seed"], shard)
    opened = open_pipeline(specification["mode"], files, Options(**options))
    size, epochs = specification["batch_size"], specification["epochs"]
    with Minibatches(opened, order, size, epochs=epochs) as batches:
        for batch in batches:
            yield batch, batches.is_new_epoch
        specification["result"]["statistics"] = opened.statistics()


def data_set(specification: dict[str, Any]) -> Any:
    """The images, or only their bytes where nothing is to be decoded."""
    from burstlab.pipelines import Files, Images

    class Lengths(Files):
        def decode(self, index: int, content: Any) -> int:
            return len(content)

    names = Path(specification["list"]).read_text().split("\n")[: specification["files"]]
    root = specification["root"]
    if not specification.get("decode", True):
        return Lengths(root, names)
    return Images(root, names, side=SIDE, dtype=specification.get("dtype", "float32"))


def torch_loader(specification: dict[str, Any]) -> Iterator[tuple[Minibatch, bool]]:
    """PyTorch's DataLoader over the same files, in the same order, decoded in the same way."""
    import burstio
    from torch.utils.data import DataLoader

    files = data_set(specification)
    order = burstio.shuffled(len(files), specification["seed"])(0)
    loader: Any = DataLoader(
        files, specification["batch_size"], sampler=order, num_workers=specification["workers"]
    )
    yield from with_ends(loader)


def mosaic(specification: dict[str, Any]) -> Iterator[tuple[Minibatch, bool]]:
    """MosaicML Streaming from shards that were made before; its own shuffle."""
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader

    images, size = data_set(specification), specification["batch_size"]

    class Shards(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, index: int) -> Any:
            return images.decode(0, super().__getitem__(index)["jpeg"])

    shards = Shards(
        remote=specification["shards"],
        local=specification["local"],
        shuffle=True,
        shuffle_seed=specification["seed"],
        batch_size=size,
        num_canonical_nodes=1,
    )
    yield from with_ends(DataLoader(shards, size, num_workers=specification["workers"]))


def make_shards(specification: dict[str, Any]) -> Iterator[tuple[Minibatch, bool]]:
    """The shards that ``mosaic`` reads, of 64 MiB."""
    from streaming import MDSWriter

    root = Path(specification["root"])
    names = Path(specification["list"]).read_text().split("\n")[: specification["files"]]
    columns = {"jpeg": "bytes"}
    with MDSWriter(out=specification["shards"], columns=columns, size_limit=64 << 20) as writer:
        for name in names:
            writer.write({"jpeg": (root / name).read_bytes()})
    yield None, True


def tensorflow(specification: dict[str, Any]) -> Iterator[tuple[Minibatch, bool]]:
    """tf.data: 64 reads at once, so many decoders, its own JPEG decoder."""
    import burstio
    import tensorflow as tf

    root = specification["root"]
    names = Path(specification["list"]).read_text().split("\n")[: specification["files"]]
    order = burstio.shuffled(len(names), specification["seed"])(0)

    def decode(content: Any) -> Any:
        image = tf.io.decode_jpeg(content, channels=3)
        shape = tf.shape(image)
        side = tf.minimum(shape[0], shape[1])
        top, left = (shape[0] - side) // 2, (shape[1] - side) // 2
        middle = tf.image.crop_to_bounding_box(image, top, left, side, side)
        return tf.image.resize(middle, (SIDE, SIDE))

    data = tf.data.Dataset.from_tensor_slices([f"{root}/{names[index]}" for index in order])
    data = data.map(tf.io.read_file, num_parallel_calls=64)
    data = data.map(decode, num_parallel_calls=specification["workers"])
    data = data.batch(specification["batch_size"]).prefetch(2)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 64
    yield from with_ends(data.with_options(options))


def with_ends(minibatches: Any) -> Iterator[tuple[Minibatch, bool]]:
    """With the end of the one epoch marked at its last minibatch."""
    waiting = None
    for minibatch in minibatches:
        if waiting is not None:
            yield waiting, False
        waiting = (minibatch,)
    yield waiting, True


COMMON = ["numpy", "PIL.JpegImagePlugin", "burstio", "burstlab.pipelines"]
IMPORTED = {
    "pipeline": [*COMMON, "burstlab.pipelines.direct", "burstlab.pipelines.lazy"],
    "torch": [*COMMON, "torch.utils.data"],
    "mosaic": [*COMMON, "torch.utils.data", "streaming"],
    "make_shards": ["streaming"],
    "tensorflow": ["burstio", "tensorflow"],
}
SOURCES: dict[str, Source] = {
    "pipeline": pipeline,
    "torch": torch_loader,
    "mosaic": mosaic,
    "make_shards": make_shards,
    "tensorflow": tensorflow,
}

if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
