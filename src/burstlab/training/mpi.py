"""All ranks, by MPI: what they tell one another beside gradients."""

from typing import Any


class Ranks:
    """See ``burstlab.training.rank.Group``; ``communicator`` is one of mpi4py's."""

    def __init__(self, communicator: Any) -> None:
        self._mpi = communicator
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()

    def broadcast(self, value: Any) -> Any:
        return self._mpi.bcast(value)

    def gather(self, value: Any) -> list[Any] | None:
        gathered: list[Any] | None = self._mpi.gather(value)
        return gathered

    def barrier(self) -> None:
        self._mpi.Barrier()
