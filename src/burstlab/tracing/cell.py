"""The trace of one cell: what its workload is run by, and what becomes of it."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from burstlab.errors import ConfigurationError
from burstlab.record import TRACES
from burstlab.supervision import last_words
from burstlab.tracing.strace import command as strace

PARTS = "trace"  # directory below the cell's: a file of each tracer, until they are collected
PATIENCE_S = 30
NO_FILTER = "seccomp filter is requested but unavailable"  # strace's words; it goes on without
FILES = ("host", "process", "program", "place", "path", "reads", "read_bytes", "writes",
         "written_bytes")  # fmt: skip
STORED = ("work", "dataset", "local")  # places that the totals are of
REQUESTS = ("host", "program", "place", "direction", "size_bytes", "calls")
UNSEEN = {
    "mmap": "were mapped (mmap): what is read and written so is",
    "io_uring": "were used with io_uring: what is read and written so is",
    "libaio": "were used with io_submit: what is read and written so is",
}


class CellTrace:
    """Made before anything is started, so that a cell that can't be traced is told at once."""

    def __init__(self, cell_dir: Path, way: str) -> None:
        """``way``: one of burstlab.request.TRACERS. Raises ConfigurationError where it can't."""
        self.tool = {"strace": _strace, "bpftrace": _bpftrace}[way]()
        self.caveats = [f"traced by {self.tool['tool']}: no time of this run is that of another"]
        if self.tool.get("filter") == "":
            self.caveats.append(
                "strace had no seccomp filter: it stopped the workload at every system call, not "
                "only at those that it counts"
            )
        self._way = way
        self._cell_dir = cell_dir
        shutil.rmtree(cell_dir / PARTS, ignore_errors=True)

    def prefix(self, environment: Mapping[str, str]) -> list[str]:
        """Words that run the command after them traced, on any host of the cell.

        ``environment`` is what the workload sees: its directories are the places of the trace.
        """
        places = {
            "work": environment["BURSTLAB_MOUNT"],
            "dataset": environment["BURSTLAB_DATA"],
            "local": environment["BURSTLAB_LOCAL"],
            "cell": os.fspath(self._cell_dir),
        }
        given = [f"{place}={path}" for place, path in places.items() if path]
        tracer = [sys.executable, "-P", "-m", "burstlab.tracing", self._way]
        return [*tracer, os.fspath(self._cell_dir / PARTS), *given, "--"]

    def collect(self, hosts: int) -> tuple[dict[str, Any], list[str]]:
        """Facts for the record, and in what the trace is not whole; the tables are written.

        ``hosts``: on how many something of the workload may have run.
        """
        parts, cut = [], []
        for path in sorted((self._cell_dir / PARTS).glob("*.json")):
            part = json.loads(path.read_text() or "{}")
            if not part.get("whole"):
                cut.append(path.name.rsplit(".", 2)[0])
            if part:
                parts.append(part)
        requests = ([part["host"], *row] for part in parts for row in part["requests"])
        _write(self._cell_dir / TRACES[0], FILES, _files(parts))
        _write(self._cell_dir / TRACES[1], REQUESTS, requests)
        shutil.rmtree(self._cell_dir / PARTS, ignore_errors=True)
        seen = sorted({*cut, *(part["host"] for part in parts)})
        issues = [f"the trace of {host} is not whole: its tracer ended early" for host in cut]
        if seen and len(seen) < hosts:
            issues.append(
                f"traced on {', '.join(seen)} only, of {hosts} hosts: what ran on the others is "
                "not in the trace"
            )
        return {**self.tool, **_totals(parts)}, [*issues, *_unseen(parts)]


def _strace() -> dict[str, str]:
    """What traces here, for the record."""
    if shutil.which("strace") is None:
        raise ConfigurationError(
            "--trace-io: strace is not here: install it (envs/trace), or leave the flag out"
        )
    true = shutil.which("true") or "true"
    tried = _asked(strace(os.devnull, [true]))
    if tried.returncode != 0:
        raise ConfigurationError(
            f"--trace-io: strace can't trace here: {last_words(tried.stderr)} (is ptrace allowed? "
            "see kernel.yama.ptrace_scope; a container wants CAP_SYS_PTRACE)"
        )
    version = _asked(["strace", "-V"]).stdout.partition("\n")[0].split()[-1]
    return {"tool": f"strace {version}", "filter": "" if NO_FILTER in tried.stderr else "seccomp"}


def _bpftrace() -> dict[str, str]:
    if shutil.which("bpftrace") is None:
        raise ConfigurationError(
            "--trace-io bpftrace: bpftrace is not here: install it, or use strace"
        )
    lacking = [what for what, there in {
        "root": os.geteuid() == 0,
        "an x86-64 processor": os.uname().machine == "x86_64",
        "/sys/kernel/btf/vmlinux": Path("/sys/kernel/btf/vmlinux").exists(),
        "/sys/kernel/tracing (mount -t tracefs none /sys/kernel/tracing)":
            Path("/sys/kernel/tracing/events/raw_syscalls").exists(),
    }.items() if not there]  # fmt: skip
    if lacking:
        raise ConfigurationError(
            f"--trace-io bpftrace: it wants {', '.join(lacking)}; strace does without"
        )
    told = _asked(["bpftrace", "--version"]).stdout.split()
    return {"tool": f"bpftrace {told[-1].removeprefix('v')}"}


def _asked(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


def _totals(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the data: what is read of libraries and written into logs is in the table only."""
    inside = [row for part in parts for row in part["files"] if row[2] in STORED]
    return {
        "hosts": sorted({part["host"] for part in parts}),
        **{name: sum(row[at] for row in inside) for at, name in enumerate(FILES[5:], 4)},
        "no_file_calls": sum(part["no_files"][0] for part in parts),
        "no_file_bytes": sum(part["no_files"][1] for part in parts),
        "tracer_cpu_s": round(sum(part["tracer_cpu_s"] for part in parts), 2),
        "tables": list(TRACES),
    }


def _unseen(parts: Iterable[dict[str, Any]]) -> list[str]:
    found: dict[tuple[str, str], int] = {}
    for part in parts:
        for way, place, files in part["unseen"]:
            found[way, place] = found.get((way, place), 0) + files
    return [
        f"{f'{files} files in {place}' if place else 'files'} {UNSEEN[way]} not in the trace"
        for (way, place), files in sorted(found.items())
    ]


def _files(parts: Iterable[dict[str, Any]]) -> Iterator[list[Any]]:
    """Processes numbered through, for each tracer begins with 1."""
    before = 0
    for part in parts:
        for number, *rest in part["files"]:
            yield [part["host"], before + number, *rest]
        before += max((row[0] for row in part["files"]), default=0)


def _write(path: Path, head: Sequence[str], rows: Iterable[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
