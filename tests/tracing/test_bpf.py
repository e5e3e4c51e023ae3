"""What bpftrace's lines mean, and that it counts what strace counts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from burstlab.mounts import unescape
from burstlab.tracing import bpf
from burstlab.tracing.counting import Places
from tests.cell.running import Place

from .test_cell import WORKLOAD, table

MOUNT = 'mount -t tracefs none /sys/kernel/tracing && exec "$@"'


def lines(place: Path, *names: str) -> list[str]:
    """As bpftrace prints names of files 1, 2, ... in ``place``: up to their file system's root."""
    device = place.stat().st_dev
    number = (os.major(device) << bpf.MINOR_BITS) | os.minor(device)
    table = Path("/proc/self/mountinfo").read_text().splitlines()
    mounts = [[unescape(field) for field in line.split(" ")] for line in table]
    wanted = f"{os.major(device)}:{os.minor(device)}"
    root, at = next((m[3], m[4]) for m in mounts if m[2] == wanted and str(place).startswith(m[4]))
    inside = (root.rstrip("/") + "/" + str(place.relative_to(at))).strip("/").split("/")
    return [
        json.dumps({"type": "printf", "data": f"{number} {inode} 7 {part}"})
        for inode, name in enumerate(names, 1)
        for part in (name, *reversed(inside))
    ] + [str(number)]


def test_maps_are_counts_of_processes_and_files(tmp_path: Path) -> None:
    *told, device = lines(tmp_path, "a b", "c")
    counts = {
        f"0,100,{device},1,7,50,900,cat": 3,
        f"0,0,{device},1,7,50,900,cat": 1,
        f"1,5,{device},2,7,50,900,cat": 2,
        f"1,5,{device},2,7,50,901,a,b c": 1,
        f"2,0,{device},2,7,50,901,a,b c": 1,
        f"0,9,{device},99,7,50,900,cat": 1,
    }
    told += [json.dumps({"type": "map", "data": {"@n": counts}})]
    told += [
        json.dumps({"type": "map", "data": {name: 4}}) for name in ("@no_file_calls", "@way425")
    ]
    told += [json.dumps({"type": "map", "data": {"@way209": 0}}), "", "\n"]
    found = bpf.result(told, Places({"work": str(tmp_path)}))
    assert found == {
        "files": [
            [1, "cat", "work", "a b", 4, 300, 0, 0],
            [1, "cat", "work", "c", 0, 0, 2, 10],
            [2, "a,b c", "work", "c", 0, 0, 1, 5],
        ],
        "requests": [
            ["cat", "work", "read", 100, 3],
            ["cat", "work", "read", 0, 1],
            ["cat", "work", "written", 5, 2],
            ["a,b c", "work", "written", 5, 1],
        ],
        "unseen": [["mmap", "work", 1], ["io_uring", "", 1]],
        "no_files": [4, 0],
        "whole": True,
    }


@pytest.mark.requires("root")
@pytest.mark.parametrize("name", ["with a blank", "back\\slash"])
def test_a_mount_point_may_have_any_name(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    try:
        (place / "work").mkdir()
        *told, device = lines(place / "work", "a")
        told.append(json.dumps({"type": "map", "data": {"@n": {f"0,9,{device},1,7,5,9,cat": 1}}}))
        found = bpf.result(told, Places({"work": str(place / "work")}))
    finally:
        subprocess.run(["umount", place], check=True)
    assert found["files"] == [[1, "cat", "work", "a", 1, 9, 0, 0]]


def test_what_was_lost_is_told(tmp_path: Path) -> None:
    places = Places({})
    assert bpf.result(['{"type": "lost_events", "data": {"events": 3}}'], places)["whole"] is False
    full = {f"0,{size},1,1,1,1,1,x": 1 for size in range(bpf.MOST_KEYS)}
    told = json.dumps({"type": "map", "data": {"@n": full}})
    assert bpf.result([told], places)["whole"] is False


@pytest.mark.slow
@pytest.mark.requires("bpftrace", "trace")
def test_it_counts_what_strace_counts(tmp_path: Path) -> None:
    place = Place(tmp_path)
    workload = tmp_path / "workload.py"
    workload.write_text(WORKLOAD)
    found = {}
    for way in ("strace", "bpftrace"):
        run = ["sh", "-c", f"{sys.executable} {workload}; kill -SEGV $$"]
        command = place.command("--storage", "nodelocal", "--trace-io", way, run=run)
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", MOUNT, "sh", *command],
            env=place.environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 139, done.stderr
        rows = [row for row in table(place, "files") if row["place"] == "work"]
        sums: dict[tuple[str, str], list[int]] = {}
        for row in rows:
            numbers = [int(row[n]) for n in ("reads", "read_bytes", "writes", "written_bytes")]
            before = sums.get((row["program"], row["path"]), [0, 0, 0, 0])
            sums[row["program"], row["path"]] = [
                a + b for a, b in zip(before, numbers, strict=True)
            ]
        requests = [row for row in table(place, "requests") if row["place"] == "work"]
        found[way] = sums, sorted(tuple(row.values()) for row in requests)
        record = place.record()
        assert record is not None and way in record["trace"]["tool"]
        assert not any("not whole" in issue for issue in record["issues"]), record["issues"]
    assert found["bpftrace"] == found["strace"]
    assert place.left_behind() == []


def test_where_it_may_not_trace_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, programs = Place(tmp_path), tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    done = place.run("--storage", "nodelocal", "--trace-io", "bpftrace", run=["true"])
    assert done.returncode == 120
    assert "bpftrace is not here" in done.stderr
