"""What a program that knows nothing of burstio pays for the directory of `--staging lazy`.

    python benchmarks/lazy_directory.py [--files 4000] [--runs 5] [--latency-ms 12.5] [--base DIR]

Two threads read files of 42 to 110 KB whole: from the emulated parallel file system, from the
agent's directory (a first time in the order in which its cache is filled or in the opposite one,
so that every read comes before its turn, then again), and from node-local storage. All take
turns, each with a mount, an agent and a cache of its own. Before a second time the kernel is made
to forget the files; a third time it gives them from memory. Checked: all bytes came from the
source, and no file twice.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fresh_mount import fresh_mount, read_bytes, require_cold
from prefetch_nodes import line, running
from prefetch_rows import LINE, show
from staging import make_files

from burstlab.cache import bring, issues
from burstlab.dataset.manifest import read_manifest
from burstlab.mounts import mount_of
from burstlab.pfs.emulation import Emulation
from burstlab.process import cpu_seconds

READERS = 2
LIMIT_S = 600
TO_READ = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
root = Path(sys.argv[1])
paths = [root / name for name in Path(sys.argv[2]).read_text().splitlines()]
began = time.monotonic()
with ThreadPoolExecutor(int(sys.argv[3])) as readers:
    total = sum(readers.map(lambda path: len(path.read_bytes()), paths))
print(total, time.monotonic() - began)
"""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency-ms", type=float, default=12.5)
    parser.add_argument("--base", type=Path, default=tempfile.gettempdir())
    arguments = parser.parse_args()
    emulation = Emulation(arguments.latency_ms, 0.5, 0.0, 0.0)
    with tempfile.TemporaryDirectory(dir=arguments.base) as directory:
        bench = Bench(Path(directory), arguments.files, emulation)
        print(
            f"conditions: {arguments.files} files, {bench.size_bytes / 1e6:.0f} MB; {emulation};"
            f" {READERS} readers; node-local storage: {mount_of(bench.base).type};"
            f" {arguments.runs} turns; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f},"
            f" Linux {platform.release()}",
            flush=True,
        )
        for _ in range(arguments.runs):
            bench.turn()
        bench.table()


class Bench:
    """The data set, its order, and what was measured: seconds by what was read."""

    def __init__(self, base: Path, files: int, emulation: Emulation) -> None:
        self.base, self.files, self.emulation = base, files, emulation
        self.size_bytes = make_files(base, files)
        self.backing = base / "backing"
        names = [entry.path for entry in read_manifest(base / "manifest.json").files]
        (base / "order").write_text("\n".join(names))
        (base / "opposite").write_text("\n".join(reversed(names)))
        self.taken: dict[str, list[float]] = defaultdict(list)

    def turn(self) -> None:
        """Each once."""
        with self.source() as root:
            self.read("source", root)
        with self.lazy("lazy") as (root, agent):
            self.read("lazy, first", root)
            before = cpu_seconds(agent)
            self.read("lazy, second", root, cold=True)
            self.taken["agent"].append((cpu_seconds(agent) - before) / self.files * 1e6)
            self.read("lazy, third", root)
        with self.lazy("lazy, opposite") as (root, _):
            self.read("lazy, opposite", root, order="opposite")
        self.read("local, second", self.backing, cold=True)
        self.read("local, third", self.backing)

    def read(self, what: str, root: Path, order: str = "order", cold: bool = False) -> None:
        """All files, whole, in this order."""
        if cold and (said := issues({"here": bring([root], "cold")})):
            sys.exit(said[0])
        words = [sys.executable, "-c", TO_READ, str(root), str(self.base / order), str(READERS)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=True)
        size_bytes, elapsed_s = done.stdout.split()
        if int(size_bytes) != self.size_bytes:
            sys.exit(f"{what}: {size_bytes} of {self.size_bytes} bytes were read")
        self.taken[what].append(float(elapsed_s))

    @contextmanager
    def source(self) -> Iterator[Path]:
        """The data set on a fresh mount; every byte of it must be read."""
        mount, exports = self.base / "mount", {"set": f"{self.backing}:ro"}
        with fresh_mount(mount, exports, self.emulation) as pid:
            read = read_bytes(pid)
            yield mount / "set"
            require_cold("the source", read_bytes(pid) - read, self.size_bytes)

    @contextmanager
    def lazy(self, what: str) -> Iterator[tuple[Path, int]]:
        """The agent's directory and pid; it must have opened every file once."""
        local = self.base / "local"
        data, report = local / "data", local / "report.json"
        for made in (local, data):
            made.mkdir(0o700)
        with self.source() as root:
            words = ["--manifest", self.base / "manifest.json", "--root", root, "--mount", data]
            words += ["--socket", local / "socket", "--cache", local / "cache"]
            words += ["--order", self.base / "order", "--statistics", report]
            with running([*AGENT, *map(str, words)]) as agent:
                line(agent, "ready")
                yield data, agent.pid
        opens = json.loads(report.read_bytes())["source_opens"]
        if opens != self.files:
            sys.exit(f"{what}: {opens} files were opened at the source, of {self.files}")
        shutil.rmtree(local)

    def table(self) -> None:
        """Ratios of the two of one turn, and the seconds behind them."""
        print(LINE.format("", "median", "range", ""))
        self.ratio("source", "lazy, first", "first time, in the order of the list")
        self.ratio("source", "lazy, opposite", "first time, in the opposite order")
        self.ratio("lazy, second", "local, second", "second time, from the disk")
        self.ratio("lazy, third", "local, third", "third time, from memory")
        show("CPU of the agent, second time [us a file]", self.taken.pop("agent"))
        print("\nseconds")
        for what, seconds in self.taken.items():
            show(what, seconds)

    def ratio(self, one: str, other: str, when: str) -> None:
        """A row."""
        names = (one.partition(",")[0], other.partition(",")[0])
        pairs: Sequence[tuple[float, float]] = list(
            zip(self.taken[one], self.taken[other], strict=True)
        )
        show(f"{' / '.join(names)}, {when}", [above / below for above, below in pairs])


AGENT = [sys.executable, "-m", "burstio.agent", "--while-stdin"]

if __name__ == "__main__":
    main()
