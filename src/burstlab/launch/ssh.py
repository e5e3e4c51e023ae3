"""ssh to every host, fanned out by ClusterShell's clush(1)."""

import shlex
import sys
from collections.abc import Sequence

OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
_GONE = """'{"host": "%h", "gone": "ssh ended with status '$?'"}'"""  # see burstlab.agents


def command(hosts: Sequence[str], argv: Sequence[str], options: Sequence[str]) -> list[str]:
    """clush with its `exec` worker, so that each ssh gets exactly these options.

    The words pass two shells: clush's on this host and the remote login shell. A host whose ssh
    ends in failure is told at once, in the agent's stead, for clush itself waits for the others.
    """
    remote = shlex.join(argv)
    local = shlex.join(["ssh", *OPTIONS, *options, "%h", remote]) + f" || echo {_GONE}"
    clush = [sys.executable, "-m", "ClusterShell.CLI.Clush", "-R", "exec"]
    return [*clush, "-N", "-q", "-S", "-f", str(len(hosts)), "-w", ",".join(hosts), local]
