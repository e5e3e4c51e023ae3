"""The plain front end: an iterator of minibatches for any program."""

from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from burstlab.pipelines.interface import Indices, Pipeline, Stalled

Order = Callable[[int], Indices]  # epoch -> its samples; burstio.shuffled, in_order, given

AHEAD = 1  # whole epochs planned beyond the one that is read


class Minibatches(Iterator[list[Any]]):
    """Lists of ``batch_size`` examples, decoded, in the order given.

    Without ``epochs`` it has as many as the order has, which may be without end. The last minibatch
    of an epoch may be short, or is filled up from the next epoch (``across_epochs``). ``epoch``,
    ``position`` (samples of this epoch so far), ``is_new_epoch`` and ``indices`` describe the
    minibatch last returned.

    Raises what ``Pipeline.take`` raises; the next call goes on behind a minibatch that was lost.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        order: Order,
        batch_size: int,
        *,
        epochs: int | None = None,
        across_epochs: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size {batch_size}: at least 1 is wanted")
        self.batch_size, self.across_epochs = batch_size, across_epochs
        self.epoch, self.position, self.is_new_epoch = 0, 0, False
        self.indices: Indices = ()
        self._pipeline, self._order = pipeline, order
        self._epochs = getattr(order, "epochs", None) if epochs is None else epochs
        self._drawn = 0  # epochs
        self._rest: list[int] = []  # of what is drawn: less than a minibatch
        self._lengths: deque[int] = deque()  # of the epochs from self.epoch on that are drawn
        self._planned: deque[int] = deque()  # sizes of the minibatches to come
        self._plan(0)  # the first minibatch does not wait for later epochs

    def __next__(self) -> list[Any]:
        if not self._planned:
            raise StopIteration
        try:
            taken = self._pipeline.take()
        except Stalled:
            raise
        except Exception:
            self._advance(self._planned.popleft())
            raise
        self.indices = taken.indices
        self._advance(self._planned.popleft())
        return taken.examples

    def close(self) -> None:
        """End the pipeline too."""
        self._pipeline.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _advance(self, samples: int) -> None:
        self.position += samples
        self.is_new_epoch = False
        while self._lengths and self.position >= self._lengths[0]:
            self.position -= self._lengths.popleft()
            self.epoch += 1
            self.is_new_epoch = True
        self._plan(AHEAD)

    def _plan(self, ahead: int) -> None:
        """Draw epochs and cut them into minibatches."""
        minibatches: list[Indices] = []
        while self._drawn != self._epochs and (
            len(self._lengths) <= ahead or not (self._planned or minibatches)
        ):
            drawn = [int(index) for index in self._order(self._drawn)]
            if not drawn:
                raise ValueError(f"epoch {self._drawn} has no samples")
            self._drawn += 1
            self._lengths.append(len(drawn))
            minibatches += self._cut(self._rest + drawn)
        self._planned.extend(len(minibatch) for minibatch in minibatches)
        if minibatches:
            self._pipeline.plan(minibatches)

    def _cut(self, samples: list[int]) -> list[Indices]:
        size = self.batch_size
        last = not self.across_epochs or self._drawn == self._epochs
        end = len(samples) if last else len(samples) // size * size
        self._rest = samples[end:]
        return [samples[at : at + size] for at in range(0, end, size)]
