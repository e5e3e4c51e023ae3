"""The front end for Chainer: an iterator that keeps the contract of MultiprocessIterator.

Batches, attributes, snapshots and warnings are those of ``chainer.iterators.MultiprocessIterator``
of Chainer 7.8.1, whose state machine it uses. Where it differs, on purpose:

* an exception of the data set is raised to the caller; there, the batch never comes;
* the order of an epoch does not depend on how far ahead it was drawn: what a ShuffleOrderSampler
  drew for batches that a reset or a snapshot drops is used again, there it is lost;
* ``serialize`` works with ``shuffle=False``, and pickling leaves the iterator as it is.
"""

import warnings
import weakref
from collections import deque
from collections.abc import Callable
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np
from chainer.dataset import Iterator
from chainer.iterators import MultiprocessIterator, ShuffleOrderSampler
from chainer.iterators._statemachine import IteratorState, iterator_statemachine

from burstlab.pipelines import Mode, Options, Stalled, open_pipeline

PLANNED = 32768  # samples that are planned ahead, within this epoch and the next
AT_ONCE = 32  # batches planned at most between two that are returned

TimeoutWarning = MultiprocessIterator.TimeoutWarning


class PipelineIterator(Iterator):
    """``dataset`` is a ``Files``; with ``mode="direct"`` any data set.

    Arguments up to ``maxtasksperchild`` are those of MultiprocessIterator: ``n_processes`` decode
    workers, ``n_prefetch`` batches ready ahead. ``shared_mem`` and ``maxtasksperchild`` are taken
    and ignored: nothing has to be measured, and workers keep nothing. ``shuffle`` and
    ``order_sampler`` exclude each other (ValueError). The others are those of ``Options``.

    ``lazy`` reads far ahead, so it asks a ``ShuffleOrderSampler`` for the next epoch's order during
    this one; any other sampler is asked no earlier than MultiprocessIterator does.
    """

    _finalized = False
    _pipeline: Any = None

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_processes: int | None = None,
        n_prefetch: int = 1,
        shared_mem: int | None = None,
        order_sampler: Callable[[Any, int], Any] | None = None,
        dataset_timeout: float | None = 30.0,
        maxtasksperchild: int | None = None,
        *,
        mode: Mode = "lazy",
        local: str | Path | None = None,
        copiers: int = 2,
        agent: str | Path | None = None,
    ) -> None:
        if shuffle is not None and order_sampler is not None:
            raise ValueError("shuffle and order_sampler exclude each other: leave one of them out")
        self.dataset, self.batch_size = dataset, batch_size
        self.repeat, self.shuffle = repeat, shuffle
        self.n_processes = n_processes or cpu_count() or 1
        self.n_prefetch = max(n_prefetch, 1)
        self.shared_mem, self.maxtasksperchild = shared_mem, maxtasksperchild
        self.dataset_timeout = dataset_timeout
        if order_sampler is None and shuffle is not False:
            order_sampler = ShuffleOrderSampler()
        self.order_sampler = order_sampler
        self.mode, self.copiers = mode, copiers
        self.local, self.agent = Path(local) if local else None, Path(agent) if agent else None
        self._drawn: deque[Any] = deque()  # orders that were drawn ahead and not used
        self._open()
        self.reset()

    def __next__(self) -> list[Any]:
        """The next ``batch_size`` examples, fewer at the end without ``repeat``.

        Warns with TimeoutWarning, which may be an error, each time ``dataset_timeout`` has passed.
        """
        self._plan()
        if not self._planned:
            self._previous_epoch_detail = self.epoch_detail
            raise StopIteration
        batch = self._take()
        self._previous_epoch_detail = self.epoch_detail
        self._state, _ = self._planned.popleft()
        return batch

    next = __next__

    @property
    def current_position(self) -> int:
        """Samples of this epoch that were returned."""
        return int(self._state.current_position)

    @property
    def epoch(self) -> int:
        """Epochs that were returned completely."""
        return int(self._state.epoch)

    @property
    def is_new_epoch(self) -> bool:
        """Whether the batch last returned has completed an epoch."""
        return bool(self._state.is_new_epoch)

    @property
    def epoch_detail(self) -> float:
        """Epochs and the part of this one."""
        return self.epoch + self.current_position / self._epoch_size

    @property
    def previous_epoch_detail(self) -> float | None:
        """The same before the batch last returned."""
        return None if self._previous_epoch_detail < 0 else self._previous_epoch_detail

    def reset(self) -> None:
        """Begin anew. Raises NotImplementedError after ``finalize``."""
        self._check_open()
        self._forget_planned()
        order = self._draw(np.arange(len(self.dataset)), 0) if self.order_sampler else None
        self._begin_at(IteratorState(0, 0, False, order))
        self._previous_epoch_detail = -1.0

    def serialize(self, serializer: Callable[[str, Any], Any]) -> None:
        """Save to, or load from, a serializer of Chainer's; keys are MultiprocessIterator's."""
        order = None if self._state.order is None else self._state.order.copy()
        position = serializer("current_position", self.current_position)
        epoch = serializer("epoch", self.epoch)
        is_new_epoch = serializer("is_new_epoch", self.is_new_epoch)
        if order is not None:
            try:
                serializer("order", order)  # loads in place
            except KeyError:
                serializer("_order", order)
        state = IteratorState(int(position), int(epoch), bool(is_new_epoch), order)
        if not _same(state, self._state):
            self._check_open()
            self._forget_planned()
            self._begin_at(state)
        try:
            previous = serializer("previous_epoch_detail", self._previous_epoch_detail)
        except KeyError:  # of an older version, or of another iterator
            before = self.epoch + (self.current_position - self.batch_size) / self._epoch_size
            previous = max(before, 0.0) if self.epoch_detail > 0 else -1.0
        self._previous_epoch_detail = float(previous)

    def finalize(self) -> None:
        """End all processes and threads; may be called again."""
        if self._pipeline is not None:
            self._close()
        self._finalized, self._pipeline = True, None

    def statistics(self) -> dict[str, int]:
        """Counters of the pipeline, where its mode has any."""
        self._check_open()
        counters: dict[str, int] = self._pipeline.statistics()
        return counters

    def __copy__(self) -> "PipelineIterator":
        other = PipelineIterator.__new__(PipelineIterator)
        other.__setstate__(self.__getstate__())
        return other

    def __getstate__(self) -> dict[str, Any]:
        live = ("_pipeline", "_close", "_planned", "_planned_to")
        state = {name: value for name, value in self.__dict__.items() if name not in live}
        return {**state, "_drawn": deque([*self._drawn_for_planned(), *self._drawn])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()
        self._begin_at(self._state)

    @property
    def _epoch_size(self) -> int:
        return len(self.dataset if self._state.order is None else self._state.order)

    def _check_open(self) -> None:
        if self._finalized:
            raise NotImplementedError("a finalized iterator can't be used again: make a new one")

    def _open(self) -> None:
        options = Options(
            workers=self.n_processes,
            ahead=self.n_prefetch,
            local=self.local,
            copiers=self.copiers,
            agent=self.agent,
            time_limit_s=self.dataset_timeout,
        )
        self._planned: deque[tuple[Any, list[Any]]] = deque()  # states, orders drawn for each
        self._pipeline = open_pipeline(self.mode, self.dataset, options)
        self._close = weakref.finalize(self, self._pipeline.close)

    def _take(self) -> list[Any]:
        while True:
            try:
                examples: list[Any] = self._pipeline.take().examples
                return examples
            except Stalled as stalled:
                if self.dataset_timeout is not None:
                    warnings.warn(f"Stalled dataset is detected: {stalled}", TimeoutWarning, 3)
            except Exception:  # the data set's: this batch is lost, the next one can be had
                self._planned.popleft()
                raise

    def _begin_at(self, state: Any) -> None:
        self._state = self._planned_to = state
        self._plan()

    def _plan(self) -> None:
        """Go on with the state machine, as far as may be."""
        self._check_open()
        minibatches: list[Any] = []
        while len(minibatches) < AT_ONCE and self._may_plan():
            drawn: list[Any] = []

            def sample(order: Any, position: int, drawn: list[Any] = drawn) -> Any:
                drawn.append(self._draw(order, position))
                return drawn[-1]

            state, indices = iterator_statemachine(
                self._planned_to, self.batch_size, self.repeat, sample, len(self.dataset)
            )
            if indices is None:
                break
            self._planned_to = state
            self._planned.append((state, drawn))
            minibatches.append(indices)
        if minibatches:
            self._pipeline.plan(minibatches)

    def _may_plan(self) -> bool:
        if len(self._planned) <= self.n_prefetch:
            return True
        if type(self.order_sampler) not in (ShuffleOrderSampler, type(None)):
            return False
        return (
            len(self._planned) * self.batch_size < PLANNED
            and self._planned_to.epoch <= self._state.epoch + 1
        )

    def _draw(self, order: Any, position: int) -> Any:
        if self._drawn:
            return self._drawn.popleft()
        assert self.order_sampler is not None
        return self.order_sampler(order, position)

    def _forget_planned(self) -> None:
        if (
            type(self.order_sampler) is ShuffleOrderSampler
        ):  # others may look at what they are given
            self._drawn.extendleft(reversed(self._drawn_for_planned()))
        self._planned.clear()
        self._pipeline.reset()

    def _drawn_for_planned(self) -> list[Any]:
        return [order for _, drawn in self._planned for order in drawn]


def _same(one: Any, other: Any) -> bool:
    return bool(one[:3] == other[:3] and np.array_equal(one.order, other.order))
