"""What `burstlab run --trace-io` costs the workload that it traces.

python benchmarks/trace_io.py [--runs 6] [--scale 1.0]

Each program runs bare and traced in turns, who is first changes with each turn, in a directory of
its own below TMPDIR; a run before each pair is not counted, for it may find less memory at hand.
Wall time and CPU (of the program and of all that traces it) are medians with ranges; the time of a
call is the further wall time of a run divided by the transfers that its trace holds.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

LEAST_CALLS = 500  # below, the start of the tracer is most of what there is
PROGRAMS = {
    "4 KiB requests": (
        "f = open('f', 'wb+', buffering=0)\n"
        "for _ in range(int(20_000 * SCALE)): f.write(bytes(4096))\n"
        "f.seek(0)\n"
        "while f.read(4096): pass\n"
    ),
    "1 MiB requests": (
        "f = open('f', 'wb+', buffering=0)\n"
        "for _ in range(int(400 * SCALE)): f.write(bytes(1 << 20))\n"
        "f.seek(0)\n"
        "while f.read(1 << 20): pass\n"
    ),
    "42 kB files": (
        "for i in range(int(2_000 * SCALE)):\n"
        "    with open(f'f{i}', 'wb') as f: f.write(bytes(42_000))\n"
        "for i in range(int(2_000 * SCALE)):\n"
        "    with open(f'f{i}', 'rb') as f: f.read()\n"
    ),
    "compute, no I/O": "for _ in range(int(10_000_000 * SCALE)): pass\n",
}


class Taken(NamedTuple):
    """One run."""

    wall_s: float
    cpu_s: float
    calls: int  # that the trace holds; 0 without one


def run(script: str, traced: bool) -> Taken:
    """One run of a program in an empty directory."""
    with tempfile.TemporaryDirectory(prefix="burstlab-trace-") as name:
        work, trace = Path(name, "work"), Path(name, "trace")
        work.mkdir()
        tracer = [sys.executable, "-P", "-m", "burstlab.tracing", str(trace), f"work={work}", "--"]
        command = [*(tracer if traced else []), sys.executable, "-I", "-c", script]
        before, begun_s = _cpu_s(), time.monotonic()
        subprocess.run(command, cwd=work, check=True, timeout=600)
        wall_s, cpu_s = time.monotonic() - begun_s, _cpu_s() - before
        parts = [json.loads(path.read_text()) for path in trace.glob("*.json")]
        calls = sum(row[4] + row[6] for part in parts for row in part["files"])
        return Taken(wall_s, cpu_s, calls)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def told(values: list[float], unit: str) -> str:
    """Median and range."""
    return f"{statistics.median(values):7.2f} {unit} [{min(values):.2f} .. {max(values):.2f}]"


def main() -> int:
    """Print a table; the runs of all programs, bare and traced, take turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--scale", type=float, default=1.0, help="of the work of each program")
    arguments = parser.parse_args()
    taken: dict[tuple[str, bool], list[Taken]] = {}
    load = os.getloadavg()[0]
    for turn in range(arguments.runs):
        for name, program in PROGRAMS.items():
            script = f"SCALE = {arguments.scale}\n{program}"
            run(script, traced=False)
            for traced in (turn % 2 == 0, turn % 2 == 1):
                taken.setdefault((name, traced), []).append(run(script, traced))
    version = subprocess.run(["strace", "-V"], capture_output=True, text=True, check=True)
    print(f"{arguments.runs} runs each in turns, {version.stdout.splitlines()[0]}, "
          f"Linux {os.uname().release}, {os.cpu_count()} cores, "
          f"load {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end")  # fmt: skip
    for name in PROGRAMS:
        bare, traced_runs = taken[name, False], taken[name, True]
        ratio = statistics.median(t.wall_s for t in traced_runs) / statistics.median(
            b.wall_s for b in bare
        )
        print(f"\n{name}: {traced_runs[0].calls} transfers, wall x {ratio:.1f}")
        for kind, runs in (("bare", bare), ("traced", traced_runs)):
            wall, cpu = ([r.wall_s for r in runs], [r.cpu_s for r in runs])
            print(f"  {kind:7} wall {told(wall, 's')}   cpu {told(cpu, 's')}")
        further_s = [t.wall_s - b.wall_s for b, t in zip(bare, traced_runs, strict=True)]
        print(f"  further wall {told(further_s, 's')}")
        if (calls := traced_runs[0].calls) > LEAST_CALLS:
            print(f"  of each call {told([1e6 * more / calls for more in further_s], 'us')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
