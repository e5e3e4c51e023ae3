"""The emulator as a process under test: mounted, used, and gone afterwards whatever happened."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from burstlab.mounts import mounted_at, unmount
from tests.polling import until

FREE = ("--metadata-latency-ms=0", "--io-latency-ms=0", "--bandwidth-mb-s=0")


@dataclass
class Emulator:
    """A running emulator; ``backing`` is what MOUNTPOINT/work shows, ``sealed`` is read-only."""

    process: subprocess.Popen[bytes]
    mount: Path
    backing: Path
    sealed: Path
    log: Path

    @property
    def work(self) -> Path:
        return self.mount / "work"

    def says(self, text: str) -> bool:
        return text in self.log.read_text()

    def stall(self) -> None:
        """Every operation waits, once this has returned."""
        self.process.send_signal(signal.SIGUSR1)
        until(lambda: self.says("stalled"), "the stall")

    def go_on(self) -> None:
        """End a stall."""
        self.process.send_signal(signal.SIGUSR1)
        until(lambda: self.says("going on"), "the end of the stall")


def command(mount: Path, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "burstlab.pfs", str(mount), *map(str, arguments)]


@contextmanager
def emulated(directory: Path, *flags: str, backing: Path | None = None) -> Iterator[Emulator]:
    """An emulator below ``directory``, mounted and answering."""
    mount, sealed, log = (directory / name for name in ("mount", "sealed", "log"))
    backing = backing or directory / "backing"
    for path in (mount, sealed, backing):
        path.mkdir(parents=True, exist_ok=True)
    exports = (f"--export=work={backing}", f"--export=sealed={sealed}:ro")
    with log.open("wb") as output:
        process = subprocess.Popen(command(mount, *exports, *flags), stdout=output, stderr=output)
    try:
        until(lambda: mounted_at(mount) or process.poll() is not None, "the mount")
        assert process.poll() is None, log.read_text()
        os.statvfs(mount)
        yield Emulator(process, mount, backing, sealed, log)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        left = unmount(mount)
        assert not left, left
