"""Epoch after epoch in the order of a sampler that is asked, where it may be, one epoch ahead."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from burstlab.pipelines.interface import Indices, Minibatch, Pipeline


class Epochs:
    """An iteration is an epoch: the minibatches of ``batches``, as PyTorch's BatchSampler has them.

    The next epoch is planned with the second minibatch of this one, where that changes nothing for
    anybody: where ``batches``, or its ``sampler``, draws from a ``generator`` of its own; counts
    with ``set_epoch``, of which the next number is tried and dropped if the next iteration has
    another; or where ``batches`` is a sequence, which is what it is. Others, such as samplers that
    draw from the random numbers of all, are asked when their iteration begins.

    Raises what ``Pipeline.take`` raises; what is left of an iteration that was broken off is
    forgotten.
    """

    def __init__(self, pipeline: Pipeline, batches: Iterable[Indices]) -> None:
        self._pipeline, self._batches = pipeline, batches
        self._sampler: Any = getattr(batches, "sampler", batches)
        self._counts = hasattr(self._sampler, "set_epoch") and hasattr(self._sampler, "epoch")
        own = getattr(self._sampler, "generator", None) is not None
        self._may_ask = self._counts or own or isinstance(batches, Sequence)
        self._next: _Epoch | None = None
        self._left = 0  # minibatches of this epoch that are planned and not taken

    def __iter__(self) -> Iterator[Minibatch]:
        epoch, self._next = self._next, None
        fits = epoch is not None and epoch.number == self._number()
        if epoch is None or not fits:
            epoch = self._draw()
        if self._left or not fits:
            self._pipeline.reset()
            self._pipeline.plan(epoch.minibatches)
        self._left = len(epoch.minibatches)
        second = min(1, self._left - 1)
        for position in range(self._left):
            if position == second and self._may_ask:
                self._plan_next()
            minibatch = self._pipeline.take()
            self._left -= 1
            yield minibatch

    def _plan_next(self) -> None:
        if self._counts:
            now = self._sampler.epoch
            self._sampler.set_epoch(now + 1)
            self._next = self._draw()
            self._sampler.set_epoch(now)
        else:
            self._next = self._draw()
        self._pipeline.plan(self._next.minibatches)

    def _draw(self) -> "_Epoch":
        return _Epoch(self._number(), [list(indices) for indices in self._batches])

    def _number(self) -> int | None:
        return self._sampler.epoch if self._counts else None


class _Epoch(NamedTuple):
    number: int | None  # of the sampler's count, if it counts
    minibatches: list[Indices]
