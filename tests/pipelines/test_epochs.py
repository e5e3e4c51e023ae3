"""Epochs by a sampler: which order is planned when, whatever the loop does."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from burstlab.pipelines.epochs import Epochs
from burstlab.pipelines.interface import Indices, Minibatch, Pipeline

COUNT, SIZE = 10, 4


class Told(Pipeline):
    """Remembers what it is told; an example is its index."""

    def __init__(self) -> None:
        self.planned: list[list[int]] = []
        self.resets = 0
        self.fails_at: list[int] | None = None

    def plan(self, minibatches: Sequence[Indices]) -> None:
        self.planned += [list(indices) for indices in minibatches]

    def take(self) -> Minibatch:
        indices = self.planned.pop(0)
        if indices == self.fails_at:
            raise OSError("gone")
        return Minibatch(indices, list(indices))

    def reset(self) -> None:
        self.resets += 1
        self.planned.clear()

    def close(self) -> None:
        pass


class Batches:
    """What PyTorch's BatchSampler does."""

    def __init__(self, sampler: object) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        order = list(self.sampler)  # type: ignore[call-overload]
        for begin in range(0, len(order), SIZE):
            yield order[begin : begin + SIZE]


class Generator(random.Random):
    """With the methods of PyTorch's Generator, whose state is an array too."""

    manual_seed = random.Random.seed

    def get_state(self) -> Any:
        return np.array(self.getstate()[1])

    def set_state(self, state: Any) -> None:
        self.setstate((self.VERSION, tuple(state.tolist()), None))


class Random:
    """What PyTorch's RandomSampler does: ``generator`` is None, and then all share one."""

    def __init__(self, generator: random.Random | None, common: random.Random) -> None:
        self.generator, self._common = generator, common

    def __iter__(self) -> Iterator[int]:
        yield from (self.generator or self._common).sample(range(COUNT), COUNT)


class Distributed:
    """What PyTorch's DistributedSampler does: the order is a function of the epoch's number."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        yield from random.Random(self.epoch).sample(range(COUNT), COUNT)


def orders(seed: int, epochs: int) -> list[list[int]]:
    """Of so many epochs of Random with a generator of this seed."""
    drawn = random.Random(seed)
    return [drawn.sample(range(COUNT), COUNT) for _ in range(epochs)]


def of_epoch(number: int) -> list[int]:
    return random.Random(number).sample(range(COUNT), COUNT)


def flat(minibatches: list[list[int]]) -> list[int]:
    return [index for minibatch in minibatches for index in minibatch]


def samples(epochs: Epochs) -> list[int]:
    return [index for minibatch in epochs for index in minibatch.indices]


def test_the_next_epoch_is_planned_before_the_last_minibatch_is_taken() -> None:
    told, wanted = Told(), orders(1, 4)
    epochs = Epochs(told, Batches(Random(Generator(1), random.Random(9))))
    for number in range(3):
        taken = []
        for position, minibatch in enumerate(epochs):
            taken += list(minibatch.indices)
            rest = wanted[number][len(taken) :]
            ahead = wanted[number + 1] if position else []
            assert flat(told.planned) == rest + ahead
        assert taken == wanted[number]
    assert told.resets == 1, "nothing that was read ahead is read again"


def test_an_epoch_of_one_minibatch_is_planned_ahead_too() -> None:
    told = Told()
    epochs = Epochs(told, [[1, 2, 3]])
    assert samples(epochs) == [1, 2, 3]
    assert told.planned == [[1, 2, 3]]
    assert samples(epochs) == [1, 2, 3]
    assert samples(Epochs(told, [])) == []


def test_a_generator_that_is_seeded_before_each_epoch_gives_the_order_of_that_seed() -> None:
    told, generator = Told(), Generator(1)
    epochs = Epochs(told, Batches(Random(generator, random.Random(9))))
    for seed in (5, 6, 7):
        generator.manual_seed(seed)
        assert samples(epochs) == orders(seed, 1)[0]


@pytest.mark.parametrize("taken", [1, 2, 3, COUNT])
def test_a_generator_is_where_its_epoch_left_it(taken: int) -> None:
    """Saved with a checkpoint, it gives the next epoch to the run that goes on."""
    wanted, generator = orders(1, 4), Generator(1)
    epochs = Epochs(Told(), Batches(Random(generator, random.Random(9))))
    samples(epochs)
    for _, _minibatch in zip(range(taken), epochs, strict=False):
        saved = generator.get_state()
    resumed = Generator()
    resumed.set_state(saved)
    after = Epochs(Told(), Batches(Random(resumed, random.Random(9))))
    assert [samples(after) for _ in range(2)] == wanted[2:]


def test_another_generator_than_that_which_was_asked_is_asked_anew() -> None:
    told, sampler = Told(), Random(Generator(1), random.Random(9))
    epochs = Epochs(told, Batches(sampler))
    for seed in (1, 2):
        sampler.generator = Generator(seed)
        assert samples(epochs) == orders(seed, 1)[0]


def test_a_generator_that_can_not_be_put_back_is_not_asked_ahead() -> None:
    told, generator = Told(), random.Random(1)
    epochs = Epochs(told, Batches(Random(generator, random.Random(9))))
    for order in orders(1, 2):
        assert samples(epochs) == order
        assert told.planned == []


def test_a_sampler_that_counts_keeps_its_count() -> None:
    told, sampler = Told(), Distributed()
    epochs = Epochs(told, Batches(sampler))
    for number in (3, 4, 5):
        sampler.set_epoch(number)
        taken = []
        for minibatch in epochs:
            assert sampler.epoch == number
            taken += list(minibatch.indices)
        assert taken == of_epoch(number)
        assert flat(told.planned) == of_epoch(number + 1)
    assert told.resets == 1


@pytest.mark.parametrize("following", [0, 7])
def test_another_number_than_the_next_is_planned_anew(following: int) -> None:
    told, sampler = Told(), Distributed()
    epochs = Epochs(told, Batches(sampler))
    assert samples(epochs) == of_epoch(0)
    sampler.set_epoch(following)  # 0: it was forgotten, and the same comes again
    assert samples(epochs) == of_epoch(following)
    assert told.resets == 2


def test_the_random_numbers_of_all_are_drawn_when_an_epoch_begins() -> None:
    told, common, wanted = Told(), random.Random(1), random.Random(1)
    epochs = Epochs(told, Batches(Random(None, common)))
    for _ in range(3):
        order, between = wanted.sample(range(COUNT), COUNT), wanted.random()
        iteration = iter(epochs)
        taken = list(next(iteration).indices)
        assert common.random() == between, "as with any other loader"
        taken += [index for minibatch in iteration for index in minibatch.indices]
        assert taken == order


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_an_iteration_broken_off_loses_no_order(taken: int) -> None:
    told, wanted = Told(), orders(1, 4)
    epochs = Epochs(told, Batches(Random(Generator(1), random.Random(9))))
    iteration = iter(epochs)
    first = [index for _ in range(taken) for index in next(iteration).indices]
    assert first == wanted[0][: len(first)]
    assert [samples(epochs) for _ in range(2)] == wanted[1:3]


def test_behind_a_minibatch_that_fails_the_next_epoch_comes() -> None:
    told, wanted = Told(), orders(1, 4)
    told.fails_at = wanted[0][SIZE : 2 * SIZE]
    epochs = Epochs(told, Batches(Random(Generator(1), random.Random(9))))
    with pytest.raises(OSError, match="gone"):
        samples(epochs)
    assert [samples(epochs) for _ in range(2)] == wanted[1:3]
