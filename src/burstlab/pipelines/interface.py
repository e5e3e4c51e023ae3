"""One interface for every way in which minibatches come to a training loop."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from burstlab.errors import BurstlabError

Indices = Sequence[int]  # numpy's arrays too
Transport = Literal["processes", "threads"]


class PipelineError(BurstlabError):
    """A pipeline can't be made, or something it consists of has died."""


class Stalled(PipelineError, TimeoutError):
    """A minibatch did not come in time. It is not lost: the next ``take`` waits for it again."""


class Minibatch(NamedTuple):
    """What ``take`` returns: examples in the order of ``indices``, decoded."""

    indices: Indices
    examples: list[Any]


@dataclass(frozen=True)
class Options:
    """How a pipeline works. The same options give the same minibatches in every mode."""

    workers: int = 2  # that decode; the paper's processes of the minibatch-generation stage
    ahead: int = 1  # minibatches decoded before they are asked for; Chainer's n_prefetch
    transport: Transport | None = None  # workers are; None: threads with lazy, else processes
    local: Path | None = None  # node-local directory: ssd's data, paper3's copies, lazy's cache
    copiers: int = 2  # paper3: processes of the prefetch stage
    queue_length: int = 1000  # paper3: minibatches in each queue; the authors' own value
    in_completion_order: bool = False  # paper3: as in the paper, whichever is copied first
    agent: Path | None = None  # lazy: socket of the node's agent; None: an engine of its own
    engine: Mapping[str, Any] | None = None  # lazy: options of that engine (docs/prefetching.md)
    time_limit_s: float | None = 30.0  # the longest wait for a minibatch; None: no limit

    def __post_init__(self) -> None:
        for name, least in (("workers", 1), ("ahead", 0), ("copiers", 1), ("queue_length", 1)):
            if getattr(self, name) < least:
                raise PipelineError(f"{name}={getattr(self, name)}: at least {least} is wanted")


class Pipeline(ABC):
    """Minibatches in the order in which they are planned, decoded ahead of being taken.

    For one thread of the process that made it: a forked child makes its own.
    """

    @abstractmethod
    def plan(self, minibatches: Sequence[Indices]) -> None:
        """Append to what will be taken; reading may begin at once, so plan far ahead."""

    @abstractmethod
    def take(self) -> Minibatch:
        """The next one that is planned. Raises IndexError when there is none.

        What the data set raises for a sample is raised here; that minibatch is then gone, and the
        next ``take`` gives the one behind it. Raises Stalled after ``time_limit_s``, PipelineError
        when a part of the pipeline has died.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forget what is planned and not taken."""

    @abstractmethod
    def close(self) -> None:
        """End every process and thread; harmless when done before."""

    def statistics(self) -> dict[str, int]:
        """Counters, where the mode has any (lazy: docs/prefetching.md)."""
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
