"""Who trains on which images: functions of their number and of the ranks' alone."""

from collections.abc import Sequence

import numpy as np

HELD_BACK_SEED, SHARD_SEED = 20120101, 20190301


def held_back(images: int, percent: int) -> tuple[list[int], list[int]]:
    """Numbers of the images to train on, and of those to validate with: the same for all ranks."""
    order = np.random.RandomState(HELD_BACK_SEED).permutation(images)
    count = images * percent // 100
    return sorted(map(int, order[count:])), sorted(map(int, order[:count]))


def shard(numbers: Sequence[int], rank: int, ranks: int) -> list[int]:
    """One rank's part of a data set, once and for all epochs, as chainermn.scatter_dataset's.

    All have as many: where it does not come out even, some images are in two parts.
    """
    order = np.random.RandomState(SHARD_SEED).permutation(len(numbers))
    count = -(-len(numbers) // ranks)
    places = (rank * count + np.arange(count)) % len(numbers)
    return [numbers[int(order[place])] for place in places]


def part(numbers: Sequence[int], rank: int, ranks: int) -> list[int]:
    """One rank's part of images that are to be seen exactly once."""
    return list(numbers[rank::ranks])
