"""The front end for PyTorch: a data set of whole minibatches, and the loader for it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch.utils.data import DataLoader, IterableDataset, default_collate

from burstlab.pipelines.epochs import Epochs
from burstlab.pipelines.interface import Indices, Pipeline


class Prefetched(IterableDataset):
    """The minibatches of ``batches``, an epoch's index lists for each iteration over it.

    ``batches`` is a ``torch.utils.data.BatchSampler`` over any sampler (for DDP over a
    DistributedSampler, whose ``set_epoch`` counts as ever), or any other iterable of index lists.
    When they are asked for, and what is raised, is told in ``burstlab.pipelines.epochs``.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        batches: Iterable[Indices],
        collate: Callable[[list[Any]], Any] = default_collate,
    ) -> None:
        self.batches, self.collate = batches, collate
        self._epochs = Epochs(pipeline, batches)

    def __len__(self) -> int:
        return len(self.batches)  # type: ignore[arg-type]  # DataLoader asks only who has one

    def __iter__(self) -> Iterator[Any]:
        for minibatch in self._epochs:
            yield self.collate(minibatch.examples)


def loader(
    pipeline: Pipeline,
    batches: Iterable[Indices],
    *,
    collate: Callable[[list[Any]], Any] = default_collate,
    pin_memory: bool = False,
) -> "DataLoader[Any]":
    """A DataLoader over it. Decoding is the pipeline's, so it has no workers of its own."""
    data = Prefetched(pipeline, batches, collate)
    return DataLoader(data, batch_size=None, num_workers=0, pin_memory=pin_memory)
