"""First process of a site: root directory, switch, parallel file system; then it only reaps.

Run by ``burstlab lab up`` as ``python -m lab.site DIRECTORY JOURNAL``.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

from burstlab.errors import BurstlabError
from burstlab.mounts import mounted_at
from lab import mounts, namespaces, network
from lab.layout import PFS, PFS_WORK, Lab

FUSE_DEVICE = Path("/run/fuse")


def main(directory: Path, journal: Path) -> None:
    """Never returns, except by an error."""
    _journal(journal)  # first of all, while /proc is still the host's
    lab = Lab.load(directory)
    mounts.enter_own_root(lab.directory / "root")
    mounts.run_mount("-t", "proc", "proc", "/proc")
    mounts.run_mount("-t", "tmpfs", "-o", "mode=0755", "burstlab-lab", "/run")
    os.mknod(FUSE_DEVICE, stat.S_IFCHR | 0o666, Path("/dev/fuse").stat().st_rdev)
    FUSE_DEVICE.chmod(0o666)
    fstab = lab.directory / "site.fstab"
    fstab.write_text(mounts.site_fstab(lab, FUSE_DEVICE))
    mounts.mount_all(fstab)
    network.batch("ip", network.switch_batch())
    namespaces.launch(
        "the emulated parallel file system",
        pfs_command(lab),
        lab.log / "pfs.log",
        namespaces.environment(),
        lambda: mounted_at(PFS) is not None,
    )
    namespaces.tell_started()
    namespaces.reap_forever()


def pfs_command(lab: Lab) -> list[str]:
    """The server of the emulated parallel file system: one for all machines."""
    shown = ["--export", f"{Path(PFS_WORK).name}={lab.pfs_backing}"]
    return [sys.executable, "-m", namespaces.PFS_MODULE, PFS, *shown, *lab.pfs.arguments()]


def _journal(journal: Path) -> None:
    with journal.open("ab", buffering=0) as out:
        out.write(Path("/proc/self/stat").read_bytes())


if __name__ == "__main__":
    os.dup2(1, 2)  # whoever waits reads stdout
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except (BurstlabError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
