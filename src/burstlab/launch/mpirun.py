"""mpirun(1) of Open MPI as a launcher."""

import os
from collections.abc import Sequence

from burstlab.launch.fanout import fan_out

CHATTER = "^-{20,}$|^ *$"  # the frame around what it has to say


def command(hosts: Sequence[str], argv: Sequence[str], options: Sequence[str]) -> list[str]:
    """One mpirun for each host: one for all does not bring stdin to all (Open MPI 4.1.4, where
    `--stdin all` reached the host it ran on and no other).

    As root it wants to be told that root is meant. In a Slurm job it starts its daemon by srun,
    which waits for those of the others if it may not share the host (SLURM_OVERLAP).
    """
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    one = [*as_root, "--host", "%h", "-n", "1", "--bind-to", "none", *options]
    return ["env", "SLURM_OVERLAP=1", *fan_out(hosts, "mpirun", [*one, *argv])]
