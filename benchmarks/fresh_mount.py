"""An emulated parallel file system of which nothing is cached, and what its process has done."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from burstlab.mounts import mounted_at
from burstlab.pfs.emulation import Emulation

END_S = 30


@contextmanager
def fresh_mount(mount: Path, exports: Mapping[str, object], emulation: Emulation) -> Iterator[int]:
    """Mounted on a directory, which is made; exports (DIR or DIR:ro) by name. The pid."""
    mount.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "burstlab.pfs", str(mount)]
    command += [f"--export={name}={shown}" for name, shown in exports.items()]
    server = subprocess.Popen([*command, *emulation.arguments()], stdout=subprocess.DEVNULL)
    try:
        while mounted_at(mount) is None:
            if server.poll() is not None:
                sys.exit(f"the emulator ended with status {server.returncode}")
            time.sleep(0.01)
        yield server.pid
    finally:
        server.terminate()
        server.wait(END_S)


def require_cold(what: str, read_bytes: int, wanted_bytes: int) -> None:
    """Every byte came from the parallel file system at least once, or this is the end."""
    if read_bytes < wanted_bytes:
        sys.exit(f"{what}: not cold: {read_bytes} of {wanted_bytes} bytes came from the PFS")


def read_bytes(pid: int) -> int:
    """Bytes that a process has asked for with read(2) and its like (proc(5), rchar)."""
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])
