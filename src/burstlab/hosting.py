"""What a cell has on its hosts: its directory, the nodes themselves, the file system they share."""

import errno
import os
from pathlib import Path

from burstlab.allocation import Allocation
from burstlab.errors import AllocationError, ConfigurationError, NodeError
from burstlab.lease import Lease
from burstlab.nodes import Nodes, VirtualNodes
from burstlab.pfs.emulation import Emulation
from burstlab.pfs.site import DATASET, EmulatedPfs, MountedPfs, ParallelFileSystem
from burstlab.relay import is_here
from burstlab.request import Request


def way_to(allocation: Allocation) -> str:
    """What `--launch auto` means: no launcher for this host, Slurm's own in its jobs, else ssh."""
    hosts = allocation.hosts
    if allocation.virtual or (len(hosts) == 1 and is_here(hosts[0])):
        return "local"
    return "srun" if allocation.origin == "Slurm" else "ssh"


def own_directory(scratch: Path, lease: Lease) -> Path:
    """The cell's node-local directory on this host. Raises ConfigurationError where there can't be
    one."""
    try:
        return lease.directory(scratch)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EROFS):
            raise
        raise ConfigurationError(
            f"--local-dir {scratch.parent}: {error.strerror} on {os.uname().nodename}: "
            "a directory that is there and can be written is wanted, on every host"
        ) from error


def reach_nodes(request: Request, directory: Path, lease: Lease) -> tuple[Nodes, list[str]]:
    """Virtual nodes are directories here; other hosts get the same path on each. Beside them, what
    they had to say of leases before this one. Raises AllocationError for one that is not reached.
    """
    if request.allocation.virtual or request.launch == "local":
        return VirtualNodes(directory, len(request.allocation.hosts), lease), []
    from burstlab.agents import AgentNodes

    try:
        nodes = AgentNodes(
            request.allocation.hosts,
            Path(f"{directory}.node"),
            request.launch,
            request.launch_options,
            lease,
            request.cell_dir,
        )
    except NodeError as error:
        raise AllocationError(str(error)) from error
    return nodes, nodes.problems


def parallel_file_system(request: Request, directory: Path, lease: Lease) -> ParallelFileSystem:
    """The site's, or an emulated one of the cell's own; not started yet."""
    if isinstance(request.pfs, Emulation):
        exports = {"cell": request.cell_dir}
        if request.manifest:
            exports[DATASET] = request.manifest.root
        return EmulatedPfs(directory, request.pfs, exports, lease)
    return MountedPfs(request.pfs or request.cell_dir, request.key.id, lease)
