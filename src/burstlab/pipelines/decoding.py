"""Minibatches that are being decoded, in the order in which they will be taken."""

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Condition
from typing import Any

from burstlab.pipelines.files import Files
from burstlab.pipelines.interface import Indices, Minibatch, Stalled
from burstlab.pipelines.workers import Workers


@dataclass(frozen=True)
class Decoding:
    """A minibatch whose samples are with the workers."""

    indices: Indices
    examples: Sequence["Future[Any]"]

    def result(self, files: Files | Any, patience_s: float | None) -> Minibatch:
        """Wait for it. Raises what the data set raised, or Stalled naming a file."""
        waiting = wait(self.examples, patience_s).not_done
        if waiting:
            late = next(i for i, e in zip(self.indices, self.examples, strict=True) if e in waiting)
            raise Stalled(f"{name(files, late)}: not read in time: is its source up?")
        return Minibatch(self.indices, [example.result() for example in self.examples])

    def cancel(self) -> None:
        """Do not begin with what has not been begun."""
        for example in self.examples:
            example.cancel()


def submit(workers: Workers, indices: Indices, contents: Sequence[Any] | None = None) -> Decoding:
    """Give a minibatch to the workers, each sample with its content or to be read by them."""
    given = contents if contents is not None else [None] * len(indices)
    pairs = zip(indices, given, strict=True)
    return Decoding(indices, [workers.submit(int(index), content) for index, content in pairs])


def check(minibatches: Sequence[Indices], count: int) -> None:
    """Raises IndexError for an index that is no sample's."""
    for minibatch in minibatches:
        for index in minibatch:
            if not 0 <= index < count:
                raise IndexError(f"sample {index}: there are {count}")


def name(files: Files | Any, index: int) -> str:
    """A sample in words: its path, where the data set has files."""
    return str(files.root / files.files[index]) if isinstance(files, Files) else f"sample {index}"


class Arrivals:
    """What a feeding thread hands to the one that takes: at most ``ahead`` + 1 minibatches.

    A generation ends with a reset; what was begun for an older one is dropped.
    """

    def __init__(self, ahead: int) -> None:
        self.changed = Condition()
        self.generation = 0
        self.closed = False
        self.planned: deque[Indices] = deque()  # and not yet fed
        self._ahead = ahead
        self._failure: Exception | None = None
        self._late = ""
        self._arrived: deque[Decoding | Exception] = deque()

    @property
    def expected(self) -> int:
        """Minibatches that are planned or have arrived. With the lock held."""
        return len(self.planned) + len(self._arrived)

    @property
    def room(self) -> bool:
        """Whether another one may be fed. With the lock held."""
        return len(self._arrived) <= self._ahead

    def put(self, generation: int, arrived: Decoding | Exception) -> None:
        """Hand one over, which is the first of those planned."""
        with self.changed:
            if generation == self.generation and not self.closed:
                self.planned.popleft()
                self._arrived.append(arrived)
                self._late = ""
                self.changed.notify_all()
            elif isinstance(arrived, Decoding):
                arrived.cancel()

    def waits_for(self, generation: int, what: str) -> None:
        """The feeding thread has waited for this for a while: told to who waits too long."""
        with self.changed:
            if generation == self.generation:
                self._late = what

    def get(self, files: Files, patience_s: float | None) -> Minibatch:
        """The next one, decoded. Raises as ``Pipeline.take`` does."""
        deadline = None if patience_s is None else time.monotonic() + patience_s
        with self.changed:
            if not self.expected:
                raise IndexError("no minibatch is planned")
            if not self.changed.wait_for(lambda: self._arrived or self._failure, patience_s):
                raise Stalled(self._late or _one_of(files, self.planned[0]))
            if not self._arrived:
                assert self._failure is not None
                raise self._failure
            first = self._arrived[0]
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if isinstance(first, Exception):
            self._forget_first()
            raise first
        try:
            minibatch = first.result(files, left)
        except Stalled:
            raise
        except Exception:
            self._forget_first()
            raise
        self._forget_first()
        return minibatch

    def fail(self, error: Exception) -> None:
        """From now on every ``get`` raises this."""
        with self.changed:
            self._failure = error
            self.changed.notify_all()

    def reset(self) -> None:
        """Begin a new generation."""
        with self.changed:
            self.generation += 1
            self._drop()

    def close(self) -> None:
        """Let the feeding thread end."""
        with self.changed:
            self.closed = True
            self._drop()

    def _drop(self) -> None:
        for arrived in self._arrived:
            if isinstance(arrived, Decoding):
                arrived.cancel()
        self._arrived.clear()
        self.planned.clear()
        self._late = ""
        self.changed.notify_all()

    def _forget_first(self) -> None:
        with self.changed:
            self._arrived.popleft()
            self.changed.notify_all()


def _one_of(files: Files, indices: Indices) -> str:
    others = f", or another of the {len(indices)} of its minibatch" if len(indices) > 1 else ""
    return f"{name(files, indices[0])}: this{others}, did not come in time"
