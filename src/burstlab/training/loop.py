"""The training loop of one rank, with the time of each part of each iteration.

The framework is behind ``Learner``; minibatches come from any pipeline behind ``Batches``.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from burstlab.training.augmentation import minibatch
from burstlab.training.parameters import Parameters
from burstlab.training.schedule import rate

# As stacked in Serizawa's figures 9 to 11, from the bottom. "other" is the CPU between them: it
# cuts, mirrors and scales pictures, brings them to the device, and steps the optimizer.
PHASES = ("other", "load", "forward", "backward", "allreduce")
SEED = 7


class Learner(Protocol):
    """A network on its device, with what trains it."""

    def put(self, pictures: Any, labels: Any) -> None:
        """Bring a minibatch to the device."""

    def forward(self) -> None:
        """Compute the loss."""

    def backward(self) -> None:
        """Compute the gradients."""

    def allreduce(self) -> None:
        """Make the gradients the mean of all ranks'."""

    def update(self, rate: float) -> None:
        """Step with that learning rate."""

    def synchronize(self) -> None:
        """Return when the device has done all that it was told."""

    def outcome(self) -> tuple[float, int]:
        """Loss of the minibatch, and how many of its images were told right."""

    def evaluate(self, pictures: Any, labels: Any) -> int:
        """How many of these images are told right, without learning from them."""


class Batches(Protocol):
    """What the iterators of ``burstlab.pipelines`` have in common; ``with`` closes them."""

    epoch: int
    is_new_epoch: bool

    def __next__(self) -> list[Any]: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


@dataclass
class Epoch:
    """What one epoch took this rank [s] and what came of it."""

    start_s: float  # Unix time
    phases_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    iterations: int = 0
    images: int = 0
    right: int = 0
    losses: list[float] = field(default_factory=list)  # of the first and the last iteration
    first_loads_s: list[float] = field(default_factory=list)  # of the first two iterations
    validation_start_s: float = 0.0
    validation_s: float = 0.0
    validated: int = 0
    validated_right: int = 0


class Laps:
    """A clock that is read between the phases: no moment is in none of them or in two."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._synchronize = synchronize
        self._last = time.perf_counter()

    def lap(self) -> float:
        """Time since the last lap [s]."""
        self._synchronize()
        last, self._last = self._last, time.perf_counter()
        return self._last - last


def train(
    chosen: Parameters,
    learner: Learner,
    open_batches: Callable[[], Batches],
    validation: Callable[[], Iterable[list[Any]]] | None,
    *,
    rank: int,
    ranks: int,
    shard: int,
) -> list[dict[str, Any]]:
    """Train for the epochs that are chosen; what each was, in order.

    Time begins before the pipeline is opened, whose start is in the first load, as in the paper.
    ``shard`` is the number of images that this rank has.
    """
    random = np.random.RandomState([SEED, rank])
    epochs = [Epoch(time.time())]
    laps = Laps(learner.synchronize)
    batches = open_batches()
    per_step, steps = chosen.batch * ranks, 0
    while True:
        now = epochs[-1]
        examples = next(batches)
        load_s = laps.lap()
        pictures, labels = minibatch(examples, chosen.side, random)
        learner.put(pictures, labels)
        before_s = laps.lap()
        learner.forward()
        forward_s = laps.lap()
        learner.backward()
        backward_s = laps.lap()
        learner.allreduce()
        allreduce_s = laps.lap()
        learner.update(rate(steps * chosen.batch / shard, per_step, chosen.schedule))
        steps += 1
        loss, right = learner.outcome()
        now.iterations, now.images = now.iterations + 1, now.images + len(examples)
        now.right += right
        now.losses[1:] = [loss]
        if now.iterations <= 2:
            now.first_loads_s.append(load_s)
        other_s = before_s + laps.lap()
        took = (other_s, load_s, forward_s, backward_s, allreduce_s)
        for phase, took_s in zip(PHASES, took, strict=True):
            now.phases_s[phase] += took_s
        if not batches.is_new_epoch:
            continue
        if validation is not None:
            _validate(chosen, learner, validation(), now)
            laps.lap()  # is in no phase
        if rank == 0:
            print(f"epoch {len(epochs)} of {chosen.epochs}: {_told(now)}", flush=True)
        if batches.epoch >= chosen.epochs:
            return [asdict(epoch) for epoch in epochs]
        epochs.append(Epoch(time.time()))


def _validate(
    chosen: Parameters, learner: Learner, batches: Iterable[list[Any]], epoch: Epoch
) -> None:
    epoch.validation_start_s, began_s = time.time(), time.perf_counter()
    for examples in batches:
        epoch.validated += len(examples)
        epoch.validated_right += learner.evaluate(*minibatch(examples, chosen.side, None))
    learner.synchronize()
    epoch.validation_s = time.perf_counter() - began_s


def _told(epoch: Epoch) -> str:
    phases = ", ".join(f"{phase} {epoch.phases_s[phase]:.2f}" for phase in reversed(PHASES))
    accuracy = f"{100 * epoch.right / epoch.images:.1f} % right"
    return (
        f"{sum(epoch.phases_s.values()):.2f} s ({phases}), loss {epoch.losses[-1]:.3f}, {accuracy}"
    )
