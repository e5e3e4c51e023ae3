"""Minibatches of encoded samples, in order, from an engine of this process or an agent's."""

from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from burstio._burstio import Client, Engine, Sample
from burstio.order import Order

Minibatch = list[tuple[int, Sample]]

AHEAD = 1  # whole epochs planned beyond the one that is read


class Reader(Iterator[Minibatch]):
    """Iterates over minibatches of ``(index, sample)``; see docs/prefetching.md.

    ``order`` tells the samples of each epoch. Without ``epochs`` it has as many as the order has,
    which may be without end. The last minibatch of an epoch may be short, or is filled up from the
    next epoch (``across_epochs``).

    Raises OSError naming the file that can't be read, whose minibatch is lost: the next call goes
    on behind it. One that does not come in time (TimeoutError) is waited for again. Raises
    ConnectionError when the agent has died, and IndexError when the order names no file.
    """

    def __init__(
        self,
        engine: Engine | Client,
        order: Order,
        batch_size: int,
        *,
        epochs: int | None = None,
        across_epochs: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size {batch_size}: at least 1 is wanted")
        self.batch_size = batch_size
        self.across_epochs = across_epochs
        self.epoch = 0  # the three describe the minibatch last returned, or lost
        self.position = 0
        self.is_new_epoch = False
        self._order = order
        self._epochs = getattr(order, "epochs", None) if epochs is None else epochs
        self._planned = 0  # epochs
        self._lengths: deque[int] = deque()  # of the epochs from self.epoch on that are planned
        self._stream = engine.stream()
        self._plan(ahead=0)  # the first minibatch does not wait for later epochs' permutations

    def __next__(self) -> Minibatch:
        count = self.batch_size
        if not self.across_epochs and self._lengths:
            count = min(count, self._lengths[0] - self.position)
        before = self._stream.remaining
        try:
            batch = self._stream.take(count)
        except OSError:
            if lost := before - self._stream.remaining:  # none where it was not there in time
                self._advance(lost)
            raise
        if not batch:
            raise StopIteration
        self._advance(len(batch))
        return batch

    def close(self) -> None:
        """Forget what is read ahead. The engine stays open."""
        self._stream.close()

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
        """Tell the engine what comes, so that the next epoch is read during the tail of this."""
        while self._planned != self._epochs and (len(self._lengths) <= ahead or self._is_short()):
            indices = self._order(self._planned)
            if not len(indices):
                raise ValueError(f"epoch {self._planned} has no samples")
            self._stream.plan(indices)
            self._lengths.append(len(indices))
            self._planned += 1

    def _is_short(self) -> bool:
        """Whether the next minibatch reaches beyond what is planned."""
        return self.across_epochs and sum(self._lengths) - self.position < self.batch_size
