"""The order is data: which samples an epoch reads, one after the other, and which of them are ours.

An order is a function from the number of an epoch to the indices of its samples. One that has an
end tells its number of ``epochs``.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from burstio._burstio import Permutations

Indices = Sequence[int]  # or any buffer of integers of 4 or 8 bytes, such as numpy's arrays
Order = Callable[[int], Indices]


@dataclass(frozen=True)
class Shard:
    """The part of the data set that is this rank's, the ``rank``-th of ``ranks``.

    Fixed, as ChainerMN's ``scatter_dataset`` cuts it: consecutive samples, equally many for every
    rank, so that some are in two parts where ``ranks`` does not divide them. ``reshuffled``: in
    every epoch another part of all samples, every ``ranks``-th of the epoch's permutation.
    """

    rank: int
    ranks: int
    reshuffled: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.ranks:
            raise ValueError(f"rank {self.rank} of {self.ranks}: ranks are 0 to {self.ranks - 1}")

    def bounds(self, count: int) -> tuple[int, int]:
        """First sample of a fixed part of ``count`` samples, and their number."""
        return count * self.rank // self.ranks, -(-count // self.ranks)


def shuffled(count: int, seed: int, shard: Shard | None = None) -> Order:
    """Epoch e is the e-th ``numpy.random.RandomState(seed).permutation(count)``.

    This is the order of Chainer's ``ShuffleOrderSampler`` with that random state. With a fixed
    shard it is the permutation of the shard's samples, as each rank's iterator draws it.
    """
    begin, length = shard.bounds(count) if shard and not shard.reshuffled else (0, count)
    draws = _Draws(length, seed)

    def order(epoch: int) -> Indices:
        drawn = draws.epoch(epoch)
        if shard and shard.reshuffled:
            return drawn[shard.rank :: shard.ranks]
        return array("I", [(begin + index) % count for index in drawn]) if begin else drawn

    return order


def in_order(count: int, shard: Shard | None = None) -> Order:
    """0, 1, 2 ... in every epoch; of these, a shard's."""
    if shard is None:
        whole = array("I", range(count))
    elif shard.reshuffled:
        whole = array("I", range(shard.rank, count, shard.ranks))
    else:
        begin, length = shard.bounds(count)
        whole = array("I", [index % count for index in range(begin, begin + length)])
    return lambda _epoch: whole


def given(arrays: Sequence[Indices]) -> Order:
    """Epoch e is ``arrays[e]``; there are no more."""
    return _Given(arrays)


@dataclass(frozen=True)
class _Given:
    arrays: Sequence[Indices]

    @property
    def epochs(self) -> int:
        return len(self.arrays)

    def __call__(self, epoch: int) -> Indices:
        return self.arrays[epoch]


class _Draws:
    """The permutations of one seed, drawn in turn; going back begins anew."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed = count, seed
        self._generator = Permutations(seed)
        self._drawn = 0

    def epoch(self, epoch: int) -> Indices:
        if epoch < self._drawn:
            self._generator, self._drawn = Permutations(self.seed), 0
        for _ in range(epoch - self._drawn):
            self._generator.next(self.count)
        self._drawn = epoch + 1
        drawn = array("I")  # 4 bytes each; a list of a million integers takes ten times as long
        drawn.frombytes(self._generator.next(self.count))
        return drawn
