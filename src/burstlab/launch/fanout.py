"""One local command for each host at once, fanned out by ClusterShell's clush(1)."""

import shlex
import sys
from collections.abc import Sequence

from burstlab.launch import HOST


def fan_out(hosts: Sequence[str], program: str, words: Sequence[str]) -> list[str]:
    """clush with its `exec` worker, so that each command gets exactly these words, %h its host.

    A host whose command ends in failure is told at once, in the agent's stead, for clush itself
    waits for the others.
    """
    gone = f"""'{{"host": "%h", "gone": "{program}", "status": '$?'}}'"""
    own = shlex.join([program, *words]).replace("%", "%%").replace(f"%{HOST}", "%{h}")
    local = f"{own} || {{ echo {gone}; exit 1; }}"
    clush = [sys.executable, "-m", "ClusterShell.CLI.Clush", "-R", "exec"]
    return [*clush, "-N", "-q", "-S", "-f", str(len(hosts)), "-w", ",".join(hosts), local]
