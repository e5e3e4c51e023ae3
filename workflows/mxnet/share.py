"""Which images each rank reads, and in which order: a function of the number of the epoch alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SEED = 20120101


@dataclass(frozen=True)
class Image:
    """One image of the data set: its path below the root, and its class."""

    path: str
    label: int


@dataclass(frozen=True)
class Share:
    """What one of all ranks has to read."""

    rank: int
    ranks: int
    images: Sequence[Image]  # of the whole data set, the same on every rank

    def steps(self, batch: int) -> int:
        """Minibatches of an epoch: as many on every rank, so the last images may be left out."""
        return len(self.images) // (self.ranks * batch)

    def epoch(self, number: int, count: int) -> list[int]:
        """Numbers of this rank's images in an epoch: no two ranks have one in common."""
        order = np.random.RandomState(SEED + number).permutation(len(self.images))
        return [int(i) for i in order[self.rank :: self.ranks][:count]]
