"""Where a number comes from: code, machine, load."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import burstlab

ORDER_SEED = "BURSTLAB_ORDER_SEED"  # set by the scheduler plugin that orders a campaign's cells


def provenance(load_before: float, code: Path) -> Mapping[str, Any]:
    """Facts for the record; ``code`` is a directory of the checkout whose state is told."""
    return {
        "burstlab": burstlab.__version__,
        **_git(code),
        "python": sys.version.split()[0],
        "kernel": os.uname().release,
        "hostname": os.uname().nodename,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "cpu_model": _cpu_model(),
        "order_seed": os.environ.get(ORDER_SEED),
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
    }


def memory_bytes() -> int:
    """Of this host."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class CpuUse:
    """Processor time of this host from now on, and whose it is."""

    def __init__(self) -> None:
        self._began = (time.monotonic(), _busy_s(), _own_s())

    def share_of_others(self) -> float:
        """Part of all cores that was busy for others: everybody but this process and those it
        has waited for; the kernel's own threads and a hypervisor's other guests count as others.
        """
        wall_s, busy_s, own_s = (
            now - then
            for now, then in zip((time.monotonic(), _busy_s(), _own_s()), self._began, strict=True)
        )
        return max(0.0, busy_s - own_s) / (wall_s * (os.cpu_count() or 1))


def _busy_s() -> float:
    """Seconds that all cores together were busy since boot: /proc/stat (proc(5))."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    times = os.times()
    return sum(times[:4])


def _git(code: Path) -> Mapping[str, Any]:
    """Commit and whether the tree differs from it; neither where it is no checkout."""
    command = ["git", "-C", os.fspath(code), "status", "--porcelain=v2", "--branch", "-uno"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return {"git_sha": None, "git_dirty": None}
    lines = done.stdout.splitlines()
    sha = next((line.split()[-1] for line in lines if line.startswith("# branch.oid")), None)
    return {"git_sha": sha, "git_dirty": any(line[:1] != "#" for line in lines) if sha else None}


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine
