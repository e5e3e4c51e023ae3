"""Epoch after epoch in the order of a sampler that is asked, where it may be, one epoch ahead."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from burstlab.pipelines.interface import Indices, Minibatch, Pipeline


class Epochs:
    """An iteration is an epoch: the minibatches of ``batches``, as PyTorch's BatchSampler has them.

    The next epoch is planned with the second minibatch of this one, where that changes nothing for
    anybody: where ``batches``, or its ``sampler``, draws from a ``generator`` of its own, whose
    state is put back as if nothing had been drawn; counts with ``set_epoch``, of which the next
    number is tried; or where ``batches`` is a sequence, which is what it is. What was drawn is
    dropped if the next iteration begins with another state or number. Others, such as samplers
    that draw from the random numbers of all, are asked when their iteration begins.

    Raises what ``Pipeline.take`` raises; what is left of an iteration that was broken off is
    forgotten.
    """

    def __init__(self, pipeline: Pipeline, batches: Iterable[Indices]) -> None:
        self._pipeline, self._batches = pipeline, batches
        self._sampler: Any = getattr(batches, "sampler", batches)
        self._counts = hasattr(self._sampler, "set_epoch") and hasattr(self._sampler, "epoch")
        self._next: _Epoch | None = None
        self._left = 0  # minibatches of this epoch that are planned and not taken

    def __iter__(self) -> Iterator[Minibatch]:
        epoch, self._next = self._next, None
        fits = epoch is not None and epoch.begin.is_like(self._place())
        if epoch is None or not fits:
            epoch = self._draw()
        else:
            self._go_to(epoch.end)
        if self._left or not fits:
            self._pipeline.reset()
            self._pipeline.plan(epoch.minibatches)
        self._left = len(epoch.minibatches)
        second = min(1, self._left - 1)
        for position in range(self._left):
            if position == second and self._may_ask():
                self._plan_next()
            minibatch = self._pipeline.take()
            self._left -= 1
            yield minibatch

    def _may_ask(self) -> bool:
        own = self._generator() is not None
        return self._counts or own or isinstance(self._batches, Sequence)

    def _plan_next(self) -> None:
        now = self._place()
        if self._counts:
            self._sampler.set_epoch(now.number + 1)
        self._next = self._draw()
        self._go_to(now)
        self._pipeline.plan(self._next.minibatches)

    def _draw(self) -> "_Epoch":
        begin = self._place()
        minibatches: list[Indices] = [list(indices) for indices in self._batches]
        return _Epoch(begin, minibatches, self._place())

    def _generator(self) -> Any:
        """The sampler's own, if it can be put back; a program may give it another one."""
        generator = getattr(self._sampler, "generator", None)
        return generator if hasattr(generator, "get_state") else None

    def _place(self) -> "_Place":
        number, generator = self._sampler.epoch if self._counts else None, self._generator()
        return _Place(number, None if generator is None else generator.get_state())

    def _go_to(self, place: "_Place") -> None:
        if self._counts:
            self._sampler.set_epoch(place.number)
        if place.state is not None:
            self._generator().set_state(place.state)


class _Place(NamedTuple):
    """Where a sampler is in its course."""

    number: Any  # of its count, if it counts
    state: Any  # of its generator, if it has one: an array

    def is_like(self, other: "_Place") -> bool:
        one, another = (None if it.state is None else it.state.tolist() for it in (self, other))
        return bool(self.number == other.number and one == another)


class _Epoch(NamedTuple):
    begin: _Place  # of its drawing
    minibatches: list[Indices]
    end: _Place
