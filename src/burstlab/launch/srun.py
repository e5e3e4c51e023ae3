"""One step of the Slurm job that holds the hosts, by srun(1); stdin goes to every task."""

from collections.abc import Sequence
from pathlib import Path

# Why Slurm ended a step is asked of Slurm (burstlab.scheduler.ending).
CHATTER = (
    r"^srun: (cluster configuration lacks support for cpu binding"
    r"|error: \S+: tasks? [\d,-]+: (Exited with exit code|Killed|Terminated)"
    r"|error: (Node failure on|Application launch failed)"
    r"|launch/slurm: |Job step aborted|Force Terminated|Terminating)"
    r"|^slurmstepd-\S+: error: \*\*\* (STEP|JOB) "
)


def command(
    hosts: Sequence[str],
    argv: Sequence[str],
    options: Sequence[str],
    scratch: Path | None = None,
) -> list[str]:
    """srun with one task a host; it shares the job's resources with the workload's own steps.

    The end of one task ends no other: who survives still has to clean up. A task is not bound
    to a core, for it starts daemons and a workload that are to have them all.
    """
    count = str(len(hosts))
    return [
        *("srun", "--nodes", count, "--ntasks", count, "--ntasks-per-node", "1"),
        *("--nodelist", ",".join(hosts), "--overlap", "--kill-on-bad-exit=0", "--quiet"),
        *("--cpu-bind=none", "--mpi=none", "--input=all"),
        *options,
        *argv,
    ]
