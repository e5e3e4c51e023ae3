"""ssh(1) to every host."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from burstlab.launch.fanout import fan_out

OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")


def command(
    hosts: Sequence[str],
    argv: Sequence[str],
    options: Sequence[str],
    scratch: Path | None = None,
) -> list[str]:
    """The words pass two shells: this host's and the remote login shell."""
    return fan_out(hosts, "ssh", [*OPTIONS, *options, "%h", shlex.join(argv)])
