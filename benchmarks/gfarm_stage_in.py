"""How long a data set takes into a Gfarm of several hosts: through the mounts, and by gfpcopy.

python benchmarks/gfarm_stage_in.py [--runs 5] [--nodes 4] [--pfs-option KEY=VALUE ...]   (root)

On a lab of its own, whose parallel file system is emulated (docs/emulated-pfs.md). Each run is a
cell; what is told is its span stage_in: copying and the comparison with the manifest. The source's
pages are dropped before each run; ways and sizes take turns. Lab nodes share cores and disk, so
only the ways may be compared with each other, not these times with a cluster's.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from burstlab.dataset.manifest import members
from burstlab.dataset.writing import scan, write_manifest

WAYS = ("mounts", "gfpcopy")
SHARED = Path("/pfs/work")  # in the lab
DROP = """
import os, sys
for where, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(where, name), "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
"""


class Files(NamedTuple):
    """A data set of equal files."""

    name: str
    number: int
    size_bytes: int


DATA_SETS = (Files("small", 1000, 76_000), Files("large", 8, 64_000_000))


class Bench:
    """A lab and what is run in it."""

    def __init__(self, base: Path, nodes: int) -> None:
        self.directory = base / "lab"
        self.nodes = nodes

    def lab(self, command: str, *words: str) -> str:
        """`burstlab lab COMMAND`; its output. Raises SystemExit with what it said."""
        argv = [
            sys.executable,
            "-m",
            "burstlab",
            "lab",
            command,
            "--directory",
            str(self.directory),
        ]
        done = subprocess.run([*argv, *words], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return done.stdout

    def make(self, files: Files) -> None:
        """Files of random bytes and their manifest, on the parallel file system."""
        backing = self.directory / "pfs"
        root = backing / files.name
        root.mkdir()
        for one in range(files.number):
            (root / f"{one:05}").write_bytes(os.urandom(files.size_bytes))
        write_manifest(
            backing / f"{files.name}.json",
            scan(root, members(root, ["*"])),
            name=files.name, source="synthetic", details={}, root=root, patterns=["*"],
        )  # fmt: skip
        for path in (root, *root.iterdir(), backing / f"{files.name}.json"):
            path.chmod(0o755)

    def stage(self, files: Files, way: str) -> float:
        """Seconds of stage_in of one cell."""
        on_first = (
            "--user",
            "lab",
            "node01",
            "--",
            "env",
            f"PYTHONPATH={os.environ['PYTHONPATH']}",
        )
        self.lab("exec", *on_first, sys.executable, "-c", DROP, str(SHARED / files.name))
        cell = ["--storage", "gfarm", "-o", f"stage_in={way}", "--launch", "ssh"]
        cell += ["--hosts", f"node[01-{self.nodes:02}]", "--local-dir", "/local"]
        cell += ["--pfs", f"{SHARED}", "--cell-dir", f"{SHARED}/cell"]
        cell += ["--dataset", f"{SHARED}/{files.name}.json", "--staging", "eager", "--", "true"]
        self.lab("exec", *on_first, sys.executable, "-m", "burstlab", "run", *cell)
        record = json.loads((self.directory / "pfs/cell/record.json").read_text())
        assert record["dataset"]["staged"]["method"] == way
        spans = {span["name"]: float(span["elapsed_s"]) for span in record["spans"]}
        return spans["stage_in"]


def main() -> None:
    """Print a line for each data set and way: median and range."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--pfs-option", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).resolve().parents[1] / "src"))
    base = Path(tempfile.mkdtemp(prefix="stage-in-", dir="/var/tmp"))
    base.chmod(0o755)
    bench = Bench(base, arguments.nodes)
    options = [word for option in arguments.pfs_option for word in ("--pfs-option", option)]
    turns = [(f, way) for _ in range(arguments.runs) for f in DATA_SETS for way in WAYS]
    try:
        bench.lab("up", "--nodes", str(arguments.nodes), *options)
        try:
            for files in DATA_SETS:
                bench.make(files)
            seconds = [bench.stage(*turn) for turn in turns]
        finally:
            bench.lab("down")
    finally:
        shutil.rmtree(base)
    print(
        f"conditions: {arguments.nodes} lab nodes, {arguments.runs} runs, pfs "
        f"{' '.join(arguments.pfs_option) or 'as emulated by default'}; {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}, Linux {platform.release()}"
    )
    for files in DATA_SETS:
        for way in WAYS:
            values = [s for turn, s in zip(turns, seconds, strict=True) if turn == (files, way)]
            print(
                f"{files.number:5} files of {files.size_bytes / 1e6:g} MB  {way:8}"
                f" {statistics.median(values):6.2f} s   ({min(values):.2f} to {max(values):.2f})"
            )


if __name__ == "__main__":
    main()
