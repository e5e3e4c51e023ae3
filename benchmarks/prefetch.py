"""The lazy prefetcher beside everything it is compared with: one command, one table.

    python benchmarks/prefetch.py [--files 6400] [--runs 5] [--latency-ms 12.5] [--images DIR]
                                  [--base DIR] [--parts pipelines compute loaders bytes ablation]

JPEG files of ImageNet's sizes in 100 folders, on the emulated parallel file system with so many
milliseconds for each metadata operation. The open of a file that nobody has opened costs two: 25
ms by default, where the paper's Lustre took 26 (Serizawa, table 2). All that is compared takes
turns, each in a process and with a mount of its own; a ratio is made of the two of one turn, and
medians and ranges are of these. Every pipeline has two decode workers.

Cold is enforced by the fresh mount and by evicting node-local copies, and checked: the emulator
must have read all bytes of the data set again. Loaders are those that this Python can import
(torch, mosaicml-streaming, tensorflow).
"""

import argparse
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fresh_mount import fresh_mount, read_bytes, require_cold
from prefetch_nodes import counters
from prefetch_rows import ROOM, table

from burstlab.cache import bring, issues
from burstlab.dataset.images import make_images
from burstlab.mounts import mount_of
from burstlab.pfs.emulation import Emulation

MB = 1_000_000
FOLDERS, MEAN_BYTES = 100, 110_000
BATCH_SIZE, WORKERS, SEED = 32, 2, 3
PARTS = ("pipelines", "compute", "loaders", "bytes", "ablation")
TORCH_WORKERS = (8, 16, 32)
EPOCHS = 5  # of the jobs whose bytes are counted
COMPUTED = 5  # minibatches of the loop that is bound by its computation
ABLATION_PART = 4  # of the files: one read after the other takes long
LIMIT_S = 1800


@dataclass
class Bench:
    """What all measurements share."""

    base: Path  # on node-local storage
    images: Path
    names: list[str]
    size_bytes: int
    emulation: Emulation
    results: dict[str, list[dict[str, Any]]]

    def run(self, name: str, source: str = "pipeline", **more: Any) -> dict[str, Any]:
        """One measurement, cold, remembered under its name."""
        files = more.pop("files", len(self.names))
        local, on_pfs = self.base / "local", more.pop("on_pfs", True)
        shutil.rmtree(local, ignore_errors=True)
        local.mkdir()
        epochs = more.get("epochs", 1)
        common = {"source": source, "list": str(self.base / "list"), "files": files, "seed": SEED}
        common |= {"batch_size": BATCH_SIZE, "epochs": epochs}
        with ExitStack() as stack:
            root, pid = stack.enter_context(mounted(self))
            read = read_bytes(pid)
            asked = json.dumps({**common, "root": root / "images", **more}, default=str)
            asked = asked.replace("@local", str(local)).replace("@pfs", str(root))
            found = child(asked)
            found["pfs_bytes"] = read_bytes(pid) - read
        if on_pfs and source != "mosaic" and "minibatches" not in more:
            require_cold(name, found["pfs_bytes"], self.bytes_of(files))
        self.results[name].append(found)
        return found

    def bytes_of(self, files: int) -> int:
        """Of so many of the first."""
        return sum((self.images / path).stat().st_size for path in self.names[:files])


@contextmanager
def mounted(bench: Bench) -> Iterator[tuple[Path, int]]:
    """(a fresh mount, the emulator's pid)."""
    mount, exports = bench.base / "pfs", {"images": bench.images}
    if (bench.base / "shards").is_dir():
        exports["shards"] = bench.base / "shards"
    with fresh_mount(mount, exports, bench.emulation) as pid:
        yield mount, pid


def child(asked: str) -> dict[str, Any]:
    """A measurement in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("epochs.py")), asked]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env=environment, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{asked}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def engine(bench: Bench, **more: Any) -> dict[str, Any]:
    """Options of lazy: a memory that does not hold the data set."""
    memory = {"memory_bytes": max(16 << 20, bench.size_bytes // 8)}
    return {"workers": WORKERS, "local": "@local", "engine": {**memory, **more}}


def pipelines(bench: Bench) -> None:
    """Whole epochs of each mode."""
    bench.run("direct", mode="direct", options={"workers": WORKERS})
    bench.run("paper3", mode="paper3", options={"workers": WORKERS, "local": "@local"})
    bench.run("lazy", mode="lazy", options=engine(bench), epochs=2)
    for name, transport in (("ssd", "processes"), ("ssd, threads", "threads")):
        said = issues({"here": bring([bench.images], "cold")})
        if said:
            sys.exit(said[0])
        options = {"workers": WORKERS, "local": str(bench.images), "transport": transport}
        bench.run(name, mode="ssd", options=options, epochs=2, on_pfs=False)


def compute(bench: Bench) -> None:
    """A loop whose device computes longer than any pipeline needs for a minibatch."""
    each_s = 2.5 * BATCH_SIZE * 2 * bench.emulation.metadata_latency_ms / 1e3 / WORKERS
    loop: dict[str, Any] = {"minibatches": COMPUTED, "compute_s": each_s}
    bench.run("direct, computing", mode="direct", options={"workers": WORKERS}, **loop)
    bench.run("lazy, computing", mode="lazy", options=engine(bench), **loop)


def loaders(bench: Bench) -> None:
    """What others have, where it is installed."""
    if has("torch"):
        for workers in TORCH_WORKERS:
            bench.run(f"torch {workers}", "torch", workers=workers)
    if has("torch") and has("streaming"):
        if not (bench.base / "shards").is_dir():
            made = {"source": "make_shards", "list": bench.base / "list"}
            made |= {"files": len(bench.names), "root": bench.images}
            child(json.dumps({**made, "shards": bench.base / "shards"}, default=str))
        bench.run("mosaic", "mosaic", workers=WORKERS, shards="@pfs/shards", local="@local/mds")
    if has("tensorflow"):
        bench.run("tensorflow", "tensorflow", workers=WORKERS)


def traffic(bench: Bench) -> None:
    """What comes from the parallel file system; nothing is decoded."""
    bench.run("five epochs", mode="lazy", options=engine(bench), epochs=EPOCHS, decode=False)
    half = engine(bench, cache_bytes=bench.size_bytes / 2, memory_bytes=8 << 20)
    bench.run("half a cache", mode="lazy", options=half, epochs=EPOCHS, decode=False)
    for ranks in (2, 4):
        shared(bench, f"{ranks} ranks", ranks)
    for peers in (False, True):
        room = ("--cache-bytes", str(ROOM * bench.size_bytes))
        name = "two nodes, peers" if peers else "two nodes"
        shared(bench, name, 2, nodes=2, peers=peers, options=room)


def shared(bench: Bench, name: str, ranks: int, **more: Any) -> None:
    """Five epochs of ranks at the agents of one node or more, cold; the agents' counters."""
    with mounted(bench) as (root, pid):
        read = read_bytes(pid)
        specification = {
            "source": "pipeline", "mode": "lazy", "list": str(bench.base / "list"),
            "epochs": EPOCHS, "files": len(bench.names), "seed": SEED, "batch_size": BATCH_SIZE,
            "decode": False, "root": str(root / "images"),
        }  # fmt: skip
        found = counters(specification, bench.base / "local", ranks, LIMIT_S, **more)
        require_cold(name, read_bytes(pid) - read, bench.size_bytes)
    bench.results[name].append({"statistics": found})


def ablation(bench: Bench) -> None:
    """A cold epoch of a part of the files, one property changed at a time; where it is the cache
    that is changed, a warm one too."""
    files = len(bench.names) // ABLATION_PART
    for name, change in ABLATIONS.items():
        options: dict[str, Any] = {"workers": WORKERS}
        if change.get("mode", "lazy") == "lazy":
            options = engine(bench, **change.get("engine", {}))
        if transport := change.get("transport"):
            options["transport"] = transport
        dtype = change.get("dtype", "float32")
        mode = change.get("mode", "lazy")
        more = {"files": files, "dtype": dtype, "epochs": change.get("epochs", 1)}
        bench.run(f"part: {name}", mode=mode, options=options, **more)


ABLATIONS: dict[str, dict[str, Any]] = {
    "direct": {"mode": "direct"},
    "direct, threads instead of processes": {"mode": "direct", "transport": "threads"},
    "direct, uint8 instead of float32": {"mode": "direct", "dtype": "uint8"},
    "direct, threads and uint8": {"mode": "direct", "transport": "threads", "dtype": "uint8"},
    "lazy": {"epochs": 2},
    "lazy, processes instead of threads": {"transport": "processes"},
    "lazy, uint8": {"dtype": "uint8"},
    "lazy, nothing read ahead": {"engine": {"look_ahead": 0}},
    "lazy, one read at a time": {"engine": {"in_flight": (1, 1)}},
    "lazy, 16 reads at a time": {"engine": {"in_flight": (16, 16)}},
    "lazy, copied before it is read": {"engine": {"tee": False}},
    "lazy, a file for each sample": {"engine": {"segments": False}, "epochs": 2},
    "lazy, no cache": {"engine": {"cache": None}, "epochs": 2},
}
DO = {
    "pipelines": pipelines, "compute": compute, "loaders": loaders, "bytes": traffic,
    "ablation": ablation,
}  # fmt: skip


def has(module: str) -> bool:
    """Whether this Python can import it."""
    return importlib.util.find_spec(module) is not None


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=6400)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency-ms", type=float, default=12.5)
    parser.add_argument("--bandwidth-mb-s", type=float, default=0.0)
    parser.add_argument("--images", type=Path, help="made here if absent; default: made anew")
    parser.add_argument("--base", type=Path, default=tempfile.gettempdir())
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    if "loaders" in arguments.parts and "pipelines" not in arguments.parts:
        parser.error("--parts loaders: they are compared with lazy, which is one of the pipelines")
    with tempfile.TemporaryDirectory(dir=arguments.base) as directory:
        bench = prepare(Path(directory), arguments)
        print(conditions(bench, arguments), flush=True)
        for turn in range(arguments.runs):
            for part in arguments.parts:
                DO[part](bench)
            print(f"turn {turn + 1}: load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        table(bench.results, bench.size_bytes, len(bench.names), arguments.parts)


def prepare(base: Path, arguments: argparse.Namespace) -> Bench:
    """The images and their list."""
    images = arguments.images or base / "images"
    if not images.is_dir():
        wanted = argparse.Namespace(
            classes=FOLDERS, files=arguments.files, mean_bytes=MEAN_BYTES, seed=1
        )
        make_images(images, wanted)  # type: ignore[arg-type]  # the fields are what it reads
    names = sorted(str(path.relative_to(images)) for path in images.rglob("*.JPEG"))
    names = names[:: max(1, len(names) // arguments.files)][: arguments.files]
    if len(names) < arguments.files:
        sys.exit(f"{images}: {len(names)} files, {arguments.files} are wanted")
    (base / "list").write_text("\n".join(names))
    size_bytes = sum((images / name).stat().st_size for name in names)
    emulation = Emulation(arguments.latency_ms, 0.5, arguments.bandwidth_mb_s, 0.0)
    return Bench(base, images, names, size_bytes, emulation, defaultdict(list))


def conditions(bench: Bench, arguments: argparse.Namespace) -> str:
    """What the numbers hold for."""
    return (
        f"{len(bench.names)} JPEG files, {bench.size_bytes / MB:.0f} MB, in {FOLDERS} folders;"
        f" {bench.emulation}; node-local storage: {mount_of(bench.base).type};"
        f" minibatches of {BATCH_SIZE}, {WORKERS} decode workers; {arguments.runs} turns;"
        f" {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Linux {platform.release()},"
        f" Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
