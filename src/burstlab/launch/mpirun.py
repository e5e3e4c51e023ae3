"""mpirun(1) of Open MPI as a launcher."""

import os
from collections.abc import Sequence
from pathlib import Path

from burstlab.launch.fanout import fan_out

CHATTER = "^-{20,}$|^ *$"  # the frame around what it has to say

# Open MPI 4.1.4 makes /tmp/ompi.HOST.UID with a user's first daemon on a host and removes it with
# the last one: what starts meanwhile, another mpirun or its daemon, finds it gone and gives up
# ("orte_session_dir failed"). Where there is a directory for it, each has one of its own there.
_WITHOUT_A_TRACE = """\
trap : TERM HUP INT
"$0" "$@"; status=$? session=$OMPI_MCA_orte_tmpdir_base
rm -rf "$session"; rmdir "${session%/*}" 2>/dev/null
exit $status"""


def command(
    hosts: Sequence[str],
    argv: Sequence[str],
    options: Sequence[str],
    scratch: Path | None = None,
) -> list[str]:
    """One mpirun for each host: one for all does not bring stdin to all (Open MPI 4.1.4, where
    `--stdin all` reached the host it ran on and no other).

    As root it wants to be told that root is meant. In a Slurm job it starts its daemon by srun,
    which waits for those of the others if it may not share the host (SLURM_OVERLAP).
    """
    one = ["--allow-run-as-root"] if os.getuid() == 0 else []
    one += ["--host", "%h", "-n", "1", "--bind-to", "none"]
    if scratch:
        one += ["--mca", "orte_tmpdir_base", f"{scratch}/%h"]
        argv = ["sh", "-c", _WITHOUT_A_TRACE, *argv]
    return ["env", "SLURM_OVERLAP=1", *fan_out(hosts, "mpirun", [*one, *options, *argv])]
