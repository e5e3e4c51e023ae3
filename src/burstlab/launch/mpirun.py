"""mpirun(1) of Open MPI as a launcher: one process a host, stdin to all of them."""

import os
from collections.abc import Sequence


def command(hosts: Sequence[str], argv: Sequence[str], options: Sequence[str]) -> list[str]:
    """mpirun over exactly these hosts; as root it wants to be told that root is meant.

    In a Slurm job it starts its daemons by srun, which would wait for those of another mpirun.
    """
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    return [
        *(
            "env",
            "SLURM_OVERLAP=1",
            "mpirun",
            *as_root,
            "--host",
            ",".join(hosts),
            "--map-by",
            "ppr:1:node",
        ),
        *("--bind-to", "none", "--stdin", "all"),
        *options,
        *argv,
    ]
