"""Why a cell failed, in one line, and the exit status that says so."""

import signal
import sys

from burstlab.errors import BurstlabError, NodeError, StorageError
from burstlab.nodes import Nodes
from burstlab.stopping import Stopped
from burstlab.supervision import Supervisor, ended_how


class WorkloadFailed(BurstlabError):
    """The workload's own failure; ``status`` as a shell would tell it, ``why`` as it says."""

    def __init__(self, returncode: int, why: str = "") -> None:
        told = f"the workload ended with {ended_how(returncode)}"
        super().__init__(f"{told}: {why}" if why else told)
        self.status = 128 - returncode if returncode < 0 else returncode


def verdict(
    error: BaseException, nodes: Nodes | None, supervisor: Supervisor | None
) -> tuple[str, int]:
    """Reason and exit status; a scheduler that ends the job, or a dead daemon, is the reason
    behind whatever else went wrong."""
    from burstlab.scheduler.ending import ending

    own = isinstance(error, WorkloadFailed) and error.status < 128  # of no signal
    if end := ending(patience_s=0.0 if own else 1.0):
        if end.lost:
            lost = [f"{host}: lost (Slurm says {state})" for host, state in end.lost.items()]
            return "; ".join(lost), NodeError.exit_status
        return f"stopped by the scheduler: {end.cause}", 128 + signal.SIGTERM
    if isinstance(error, Stopped):  # by another scheduler that has lost a host, perhaps
        lost = nodes.deaths(patience_s=2.0) if nodes else []
        return "; ".join([str(error), *lost]), error.status
    deaths = supervisor.deaths() if supervisor else []
    if deaths and not isinstance(error, StorageError):
        return "; ".join([*deaths, str(error)]), StorageError.exit_status
    if isinstance(error, WorkloadFailed):
        return str(error), error.status
    if isinstance(error, BurstlabError):
        return str(error), error.exit_status
    if isinstance(error, OSError):
        told = f"{error.strerror}: {error.filename}" if error.filename else str(error)
        return told, StorageError.exit_status
    sys.excepthook(type(error), error, error.__traceback__)
    return f"burstlab itself failed: {error!r}", BurstlabError.exit_status
