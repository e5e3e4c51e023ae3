"""Staging from the emulated parallel file system: `burstlab stage` beside the tools in use.

    python benchmarks/staging.py [--files 20000] [--runs 5] [--regimes latency bandwidth both]
                                 [--tools burstlab xcp ...] [--base DIR]

Files of 42 to 110 KB in 100 directories. The tools take turns; each run has a fresh mount, so that
nothing of the source is cached, and an empty target below DIR. Nothing is asserted but that every
file arrived, and that all bytes came from the source. burstlab compares every checksum and makes
all durable within its time, the others do neither. The bound is what no client of this mount can
beat, the largest of:
  bandwidth   bytes / the emulator's bandwidth
  metadata    files / the metadata operations/s of the emulator: each costs one open
  processor   CPU seconds that the emulator spent in the run / cores
xcp: cargo install xcp. parallel, rclone, rsync: envs/staging.
"""

import argparse
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from fresh_mount import fresh_mount, read_bytes, require_cold
from prefetch_rows import LINE as ROW
from prefetch_rows import show

from burstlab.dataset.manifest import read_manifest
from burstlab.dataset.writing import scan, write_manifest
from burstlab.mounts import mount_of
from burstlab.pfs.emulation import Emulation
from burstlab.process import cpu_seconds

MB = 1_000_000
SMALLEST, LARGEST = 42_000, 110_000
DIRECTORIES = 100
LIMIT_S = 600
REGIMES = {
    "latency": Emulation(25.0, 0.5, 0.0, 2500.0),
    "bandwidth": Emulation(1.0, 0.5, 100.0, 0.0),
    "both": Emulation(1.0, 0.5, 200.0, 0.0),
}
BURSTLAB = [sys.executable, "-m", "burstlab", "stage"]
TOOLS = {
    "burstlab": [*BURSTLAB, "{manifest}", "{target}/set", "--source", "{source}"],
    "paper": ["sh", "-c", 'find "$0" -mindepth 1 -type d -print0 | parallel --will-cite -0 -j8 '
              'cp -r -- {} "$1/set/"', "{source}", "{target}"],
    "xcp -w 16": ["xcp", "-r", "-w", "16", "{source}", "{target}/"],
    "xcp -w 64": ["xcp", "-r", "-w", "64", "{source}", "{target}/"],
    "rclone 16": ["rclone", "copy", "--transfers", "16", "--checkers", "16", "{source}",
                  "{target}/set"],
    "rclone 64": ["rclone", "copy", "--transfers", "64", "--checkers", "64", "{source}",
                  "{target}/set"],
    "rsync": ["rsync", "-a", "{source}", "{target}/"],
}  # fmt: skip
LINE = "{:10} {:>7} {:>16} {:>8} {:>7} {:>6} {:>10}  {:10} {}"
COPIED = re.compile(r"^  copy +([0-9.]+) s$", re.MULTILINE)  # what burstlab stage says of itself


class Run(NamedTuple):
    """What a run of a tool took."""

    elapsed_s: float
    processor_s: float  # of the emulator
    copying_s: float  # of burstlab: without its start and end


def main() -> None:
    """A table for each regime."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--regimes", nargs="+", choices=REGIMES, default=list(REGIMES))
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--base", type=Path, default=tempfile.gettempdir())
    arguments = parser.parse_args()
    tools = [name for name in arguments.tools if shutil.which(TOOLS[name][0])]
    if lacking := sorted(set(arguments.tools) - set(tools)):
        print(f"not here, so not compared: {', '.join(lacking)}")
    with tempfile.TemporaryDirectory(dir=arguments.base) as directory:
        base = Path(directory)
        size_bytes = make_files(base, arguments.files)
        print(
            f"conditions: {arguments.files} files, {size_bytes / MB:.0f} MB, to"
            f" {mount_of(base).type}, {arguments.runs} runs; {os.cpu_count()} cores, load"
            f" {os.getloadavg()[0]:.1f}, Linux {platform.release()}"
        )
        for regime in arguments.regimes:
            compare(base, regime, tools, arguments.runs, arguments.files, size_bytes)


def make_files(base: Path, count: int) -> int:
    """The data set and its manifest; returns bytes."""
    chance, top = random.Random(1), base / "backing"
    noise = chance.randbytes(4 * LARGEST)
    paths = [f"d{number % DIRECTORIES:03}/f{number:06}" for number in range(count)]
    for path in paths:
        size, start = chance.randint(SMALLEST, LARGEST), chance.randrange(3 * LARGEST)
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(noise[start : start + size])
    manifest = base / "manifest.json"
    entries = scan(top, sorted(paths))
    write_manifest(
        manifest, entries, name="benchmark", source="synthetic", details={}, root=top,
        patterns=["*/*"],
    )  # fmt: skip
    return read_manifest(manifest).size_bytes


def compare(
    base: Path, regime: str, tools: list[str], runs: int, files: int, size_bytes: int
) -> None:
    """All tools by turns; one line each."""
    emulation = REGIMES[regime]
    print(f"\n{regime}: {emulation}")
    print(
        LINE.format(
            "", "s", "range", "files/s", "MB/s", "bound", "% of bound", "bound by", "engine alone"
        )
    )
    taken: dict[str, list[Run]] = {tool: [] for tool in tools}
    for _ in range(runs):
        for tool in tools:
            taken[tool].append(one_run(base, emulation, TOOLS[tool], files, size_bytes))
    for tool, results in taken.items():
        elapsed = statistics.median(run.elapsed_s for run in results)
        least, most = (end(run.elapsed_s for run in results) for end in (min, max))
        processor = statistics.median(run.processor_s for run in results)
        reason, bound = bound_of(emulation, files, size_bytes, processor)
        copying = [run.copying_s for run in results if run.copying_s]
        alone = f"{bound / statistics.median(copying):.0%} of bound" if copying else ""
        print(
            LINE.format(
                tool, f"{elapsed:.2f}", f"({least:.2f} to {most:.2f})", f"{files / elapsed:.0f}",
                f"{size_bytes / elapsed / MB:.0f}", f"{bound:.2f}", f"{bound / elapsed:.0%}",
                reason, alone,
            ),
            flush=True,
        )  # fmt: skip
    if "burstlab" in taken:
        ratios(taken, emulation, files, size_bytes)


def ratios(taken: dict[str, list[Run]], emulation: Emulation, files: int, size_bytes: int) -> None:
    """burstlab beside each tool and the bound, of each turn; what is aimed at is against xcp at its
    best, where latency bounds it, and the bound."""
    print(ROW.format("of each turn", "median", "range", "aim"))
    ours = [run.elapsed_s for run in taken["burstlab"]]
    medians = {tool: statistics.median(run.elapsed_s for run in taken[tool]) for tool in taken}
    best = min(
        (tool for tool in taken if tool.startswith("xcp")), key=medians.__getitem__, default=""
    )
    for tool, runs in taken.items():
        if tool != "burstlab":
            aim = ">= 3" if tool == best and emulation.metadata_rate else ""
            name = f"{tool} (its best)" if tool == best else tool
            beside = [run.elapsed_s / own for run, own in zip(runs, ours, strict=True)]
            show(f"files/s, burstlab / {name}", beside, aim)
    bounds = [
        bound_of(emulation, files, size_bytes, run.processor_s)[1] for run in taken["burstlab"]
    ]
    shares = [bound / own for bound, own in zip(bounds, ours, strict=True)]
    show("burstlab's files/s / the bound's", shares, ">= 0.95")


def bound_of(
    emulation: Emulation, files: int, size_bytes: int, processor_s: float
) -> tuple[str, float]:
    """What keeps any client from being faster, and the seconds that it takes."""
    bounds = {"processor": processor_s / (os.cpu_count() or 1)}
    if emulation.metadata_rate:
        bounds["metadata"] = files / emulation.metadata_rate
    if emulation.bandwidth_mb_s:
        bounds["bandwidth"] = size_bytes / (emulation.bandwidth_mb_s * MB)
    return max(bounds.items(), key=lambda one: one[1])


def one_run(base: Path, emulation: Emulation, tool: list[str], files: int, size_bytes: int) -> Run:
    """Every file must have arrived, and every byte come from the source."""
    target = base / "target"
    target.mkdir()
    os.sync()
    try:
        exports = {"set": f"{base / 'backing'}:ro"}
        with fresh_mount(base / "mount", exports, emulation) as pid:
            words = {"manifest": base / "manifest.json", "source": base / "mount" / "set"}
            words["target"] = target
            if tool[0] == "sh":
                (target / "set").mkdir()
            command = [filled(word, words) for word in tool]
            read, before, began = read_bytes(pid), cpu_seconds(pid), time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
            elapsed, cpu = time.monotonic() - began, cpu_seconds(pid) - before
            read = read_bytes(pid) - read
        found = sum(1 for path in target.rglob("f*") if path.is_file())
        if done.returncode != 0 or found != files:
            sys.exit(
                f"{tool[0]}: {found} files of {files}, {done.returncode}: {done.stderr[-400:]}"
            )
        require_cold(tool[0], read, size_bytes)
        copied = COPIED.search(done.stdout)
        return Run(elapsed, cpu, float(copied[1]) if copied else 0.0)
    finally:
        shutil.rmtree(target)


def filled(word: str, words: dict[str, Path]) -> str:
    """A word of a command with its paths; any other braces stay (parallel has some)."""
    for name, path in words.items():
        word = word.replace(f"{{{name}}}", str(path))
    return word


if __name__ == "__main__":
    main()
