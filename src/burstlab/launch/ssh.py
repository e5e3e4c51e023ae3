"""ssh to every host, fanned out by ClusterShell's clush(1)."""

import shlex
import sys
from collections.abc import Sequence

OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")


def command(hosts: Sequence[str], argv: Sequence[str], options: Sequence[str]) -> list[str]:
    """clush with its `exec` worker, so that each ssh gets exactly these options.

    The words pass two shells: clush's on this host and the remote login shell.
    """
    remote = shlex.join(argv)
    local = shlex.join(["ssh", *OPTIONS, *options, "%h", remote])
    clush = [sys.executable, "-m", "ClusterShell.CLI.Clush", "-R", "exec"]
    return [*clush, "-N", "-q", "-S", "-f", str(len(hosts)), "-w", ",".join(hosts), local]
