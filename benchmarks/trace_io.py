"""What `burstlab run --trace-io` costs the workload that it traces.

python benchmarks/trace_io.py [--runs 6] [--scale 1.0]

Each program runs bare, under strace and, where it may, under bpftrace, in turns, each turn in
another order, in a directory of its own below TMPDIR (/dev/shm spares the disk); a run before each
turn is not counted, for it may find less memory at hand. Times are medians with ranges: `wall` the
program's own clock, from its first statement to its last; `around` what comes before and after it,
the tracer's start among it; `cpu` that of the program and of all that traces it. What a call costs
is the further wall time, and CPU, of a run divided by the transfers that its trace holds.
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

from burstlab.errors import ConfigurationError
from burstlab.request import TRACERS
from burstlab.tracing.cell import CellTrace

BARE = "bare"
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


CLOCKED = """\
import time
SCALE = {scale}
begun_s = time.perf_counter()
{program}
print(time.perf_counter() - begun_s)
"""


class Taken(NamedTuple):
    """One run."""

    wall_s: float  # by the program's own clock
    around_s: float  # before and after it
    cpu_s: float
    calls: int  # that the trace holds; 0 without one


def run(script: str, way: str) -> Taken:
    """One run of a program in an empty directory."""
    with tempfile.TemporaryDirectory(prefix="burstlab-trace-") as name:
        work, trace = Path(name, "work"), Path(name, "trace")
        work.mkdir()
        words = [sys.executable, "-P", "-m", "burstlab.tracing", way]
        tracer = [] if way == BARE else [*words, str(trace), f"work={work}", "--"]
        command = [*tracer, sys.executable, "-I", "-c", script]
        before_s, begun_s = _cpu_s(), time.monotonic()
        done = subprocess.run(
            command, cwd=work, check=True, timeout=600, stdout=subprocess.PIPE, text=True
        )
        elapsed_s, cpu_s = time.monotonic() - begun_s, _cpu_s() - before_s
        parts = [json.loads(path.read_text()) for path in trace.glob("*.json")]
        calls = sum(row[4] + row[6] for part in parts for row in part["files"])
        wall_s = float(done.stdout.split()[-1])
        return Taken(wall_s, elapsed_s - wall_s, cpu_s, calls)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def told(values: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):7.2f} [{min(values):.2f} .. {max(values):.2f}]"


def ways() -> list[str]:
    """How programs run here, the bare way first."""
    found = [BARE]
    for way in TRACERS:
        try:
            with tempfile.TemporaryDirectory(prefix="burstlab-trace-") as name:
                CellTrace(Path(name), way)
            found.append(way)
        except ConfigurationError as error:
            print(f"without {way}: {error}")
    return found


def main() -> int:
    """Print a table; the runs of all programs, bare and traced, take turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--scale", type=float, default=1.0, help="of the work of each program")
    arguments = parser.parse_args()
    taken: dict[tuple[str, str], list[Taken]] = {}
    load, order = os.getloadavg()[0], ways()
    for _ in range(arguments.runs):
        for name, program in PROGRAMS.items():
            script = CLOCKED.format(scale=arguments.scale, program=program)
            run(script, BARE)
            for way in order:
                taken.setdefault((name, way), []).append(run(script, way))
        order = [*order[1:], order[0]]
    print(f"{arguments.runs} runs each in turns in {tempfile.gettempdir()}, "
          f"Linux {os.uname().release}, {os.cpu_count()} cores, "
          f"load {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end")  # fmt: skip
    for name in PROGRAMS:
        print(f"\n{name}")
        for way in sorted(order, key=[BARE, *TRACERS].index):
            runs, bare = taken[name, way], taken[name, BARE]
            wall, around, cpu = (told([one[at] for one in runs]) for at in range(3))
            print(f"  {way:9} wall {wall} s   around {around} s   cpu {cpu} s")
            if (calls := runs[0].calls) > LEAST_CALLS:
                pairs = list(zip(bare, runs, strict=True))
                walls = told([1e6 * (t.wall_s - b.wall_s) / calls for b, t in pairs])
                cpus = told([1e6 * (t.cpu_s - b.cpu_s) / calls for b, t in pairs])
                print(f"  {'':9} further of each of {calls} calls: {walls} us, cpu {cpus} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
