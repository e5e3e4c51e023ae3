"""What a workload sees of its cell (docs/reference.md)."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from burstlab.nodes import Nodes, VirtualNodes
from burstlab.request import Request
from burstlab.storage.interface import Storage


def environment(
    request: Request, nodes: Nodes, storage: Storage, work: Path, data: Path | None
) -> Mapping[str, str]:
    """Variables of the workload and of its check; ``work`` and ``data`` as they see them. Writes
    the host file."""
    hostfile = request.cell_dir / "hostfile"
    hostfile.write_text(request.allocation.hostfile())
    parameters = {
        f"{request.key.workload}_{name}".upper(): value
        for name, value in request.key.parameters.items()
    }
    return {
        **os.environ,
        **parameters,
        "BURSTLAB_MOUNT": str(work),
        "BURSTLAB_DATA": str(data or ""),
        "BURSTLAB_MANIFEST": str(request.manifest.path if request.manifest else ""),
        "BURSTLAB_LOCAL": str(storage.context.hosts[0].local_dir),
        "BURSTLAB_HOSTFILE": str(hostfile),
        "BURSTLAB_NODES": str(len(request.allocation.hosts)),
        "BURSTLAB_CORES": str(request.allocation.cores_per_node),
        "BURSTLAB_LAUNCH": "local" if isinstance(nodes, VirtualNodes) else request.launch,
        "BURSTLAB_LAUNCH_OPTIONS": shlex.join(request.launch_options),
        "BURSTLAB_STORAGE": storage.name,
        "BURSTLAB_SHARED": "true" if storage.shared else "false",
        "BURSTLAB_CELL_DIR": str(request.cell_dir),
        "BURSTLAB_PYTHON": sys.executable,
        **storage.environment(),
    }
