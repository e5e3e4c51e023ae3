"""Traced cells, as a user runs them."""

import csv
import os
import shutil
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from burstlab.tracing.cell import NO_FILTER
from tests.cell.running import Place
from tests.polling import until

pytestmark = pytest.mark.requires("trace")

WORKLOAD = """\
import os, subprocess, threading

os.chdir(os.environ["BURSTLAB_MOUNT"])

def write(name, size_bytes, times):
    with open(name, "wb", buffering=0) as out:
        for _ in range(times):
            out.write(bytes(size_bytes))

write("a", 4096, 25)
thread = threading.Thread(target=write, args=("b", 1000, 10))
thread.start()
thread.join()
subprocess.run(["cp", "a", "copy"], check=True)  # copy_file_range
subprocess.run(["sh", "-c", "cat <a >/dev/null; dd if=a of=c bs=512 status=none"], check=True)
descriptor = os.open("a", os.O_RDONLY)
os.pread(descriptor, 96, 0)
os.preadv(descriptor, [bytearray(10), bytearray(20)], 0)
target = os.open("sent", os.O_WRONLY | os.O_CREAT)
os.sendfile(target, descriptor, 0, 300)
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def traced(place: Place, script: str, status: int = 0) -> dict[str, Any]:
    done = place.run("--storage", "nodelocal", "--trace-io", run=["sh", "-c", script])
    assert done.returncode == status, done.stderr
    record = place.record()
    assert record is not None
    assert place.left_behind() == []
    return record


def table(place: Place, name: str) -> list[dict[str, str]]:
    with (place.cell / f"trace-{name}.csv").open(newline="") as opened:
        return list(csv.DictReader(opened))


def test_every_way_to_read_and_write_is_counted(place: Place) -> None:
    workload = place.root / "workload.py"
    workload.write_text(WORKLOAD)
    record = traced(place, f"exec {sys.executable} {workload}")
    files: dict[str, list[int]] = {}
    programs: dict[str, set[str]] = {}
    for row in table(place, "files"):
        if row["place"] == "work":
            numbers = (row[name] for name in ("read_bytes", "writes", "written_bytes"))
            sums = files.setdefault(row["path"], [0, 0, 0])
            files[row["path"]] = [a + int(b) for a, b in zip(sums, numbers, strict=True)]
            programs.setdefault(row["path"], set()).add(row["program"])
    a_bytes = 25 * 4096
    assert files["a"] == [3 * a_bytes + 96 + 30 + 300, 25, a_bytes]
    assert files["b"] == [0, 10, 10_000]
    assert files["c"] == [0, 200, a_bytes]
    assert files["copy"][0::2] == [0, a_bytes]
    assert files["sent"] == [0, 1, 300]
    assert {"cp", "cat", "dd"} < programs["a"]
    sizes = {
        (row["program"], row["direction"], int(row["size_bytes"])): int(row["calls"])
        for row in table(place, "requests")
        if row["place"] == "work"
    }
    assert sizes["dd", "read", 512] == sizes["dd", "written", 512] == 200
    trace = record["trace"]
    assert trace["written_bytes"] == 3 * a_bytes + 10_000 + 300
    assert trace["tracer_cpu_s"] > 0
    assert trace["hosts"] == [os.uname().nodename]
    assert any("traced by strace" in issue for issue in record["issues"])
    assert not any("mmap" in issue for issue in record["issues"])


def test_what_no_call_tells_is_told_in_the_record(place: Place) -> None:
    script = "import mmap; f = open('m', 'rb+'); mmap.mmap(f.fileno(), 0)[0]"
    record = traced(place, f'cd "$BURSTLAB_MOUNT"; echo 1 >m; {sys.executable} -c "{script}"')
    assert any("1 files in work were mapped" in issue for issue in record["issues"])


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -SEGV $$", 139)])
def test_the_workload_ends_as_without_a_trace(place: Place, script: str, status: int) -> None:
    record = traced(place, f'echo 1 >"$BURSTLAB_MOUNT/a"; {script}', status)
    assert record["status"] == "failed"
    assert record["trace"]["written_bytes"] == 2, "a trace of what went wrong is worth having"


def test_what_the_workload_leaves_running_does_not_keep_the_cell(place: Place) -> None:
    record = traced(place, 'setsid sleep 600 & echo 1 >"$BURSTLAB_MOUNT/a"; exit 0')
    assert record["status"] == "ok"


def test_a_stopped_cell_leaves_nothing(place: Place) -> None:
    script = f"touch {place.root}/runs; cat /dev/zero | cat >/dev/null"
    cell = place.start("--storage", "nodelocal", "--trace-io", run=["sh", "-c", script])
    until((place.root / "runs").exists, "the workload runs")
    cell.send_signal(signal.SIGTERM)
    assert cell.communicate(timeout=60) and cell.returncode == 143
    record = place.record()
    assert record is not None and record["trace"]["tool"].startswith("strace ")
    assert any("traced by strace" in issue for issue in record["issues"])
    assert not (place.cell / "trace").exists(), "what the tracers left has been collected"
    assert place.left_behind() == []


def test_a_killed_tracer_is_a_failed_cell(place: Place) -> None:
    script = f"touch {place.root}/runs; while :; do cat /etc/hostname >/dev/null; done"
    cell = place.start("--storage", "nodelocal", "--trace-io", run=["sh", "-c", script])
    until((place.root / "runs").exists, "the workload runs")
    tracer = until(lambda: _program(place, "strace"), "strace runs")
    os.kill(tracer, signal.SIGKILL)
    assert cell.communicate(timeout=60) and cell.returncode == 137
    record = place.record()
    assert record is not None and record["status"] == "failed"
    assert place.left_behind() == []


def _program(place: Place, name: str) -> int:
    """The process of a cell that runs a program, 0 when there is none."""
    for pid in place.processes():
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                return pid
        except OSError:
            continue
    return 0


def test_a_command_that_is_none_is_told_as_ever(place: Place) -> None:
    done = place.run("--storage", "nodelocal", "--trace-io", run=["no-such-program"])
    assert done.returncode == 120
    assert "no-such-program: no such program on PATH" in done.stderr


@pytest.mark.parametrize(
    ("double", "told"),
    [
        (None, "strace is not here"),
        ("echo 'PTRACE_TRACEME: Operation not permitted' >&2; exit 1", "Operation not permitted"),
    ],
)
def test_where_nothing_can_be_traced_nothing_starts(
    place: Place, monkeypatch: pytest.MonkeyPatch, double: str | None, told: str
) -> None:
    programs = place.root / "bin"
    programs.mkdir()
    for name in ("sh", "true"):
        (programs / name).symlink_to(f"/bin/{name}")
    if double:
        (programs / "strace").write_text(f"#!/bin/sh\n{double}\n")
        (programs / "strace").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(programs))
    done = place.run("--storage", "nodelocal", "--trace-io", run=["true"])
    assert done.returncode == 120
    assert told in done.stderr
    assert list(place.scratch.iterdir()) == []


def test_without_a_filter_the_record_says_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    double = place.root / "bin/strace"
    double.parent.mkdir()
    double.write_text(f"#!/bin/sh\necho '{NO_FILTER}' >&2\nexec {shutil.which('strace')} \"$@\"\n")
    double.chmod(stat.S_IRWXU)
    wanted = "strace had no seccomp filter: "
    assert not any(issue.startswith(wanted) for issue in traced(place, "true")["issues"])
    monkeypatch.setenv("PATH", f"{double.parent}:{os.environ['PATH']}")
    record = traced(place, "true")
    assert record["trace"]["filter"] == ""
    assert any(issue.startswith(wanted) for issue in record["issues"])


def test_a_later_cell_without_a_trace_has_none(place: Place) -> None:
    traced(place, "true")
    place.run("--storage", "nodelocal", run=["true"])
    record = place.record()
    assert record is not None and record["trace"] == {}
    assert list(place.cell.glob("trace*")) == []


def test_one_that_is_traced_traces_nobody_again(place: Place) -> None:
    """The prefix is for commands on other hosts; here it does no harm."""
    script = 'eval "$BURSTLAB_TRACE sh -c \'echo 1 >\\"$BURSTLAB_MOUNT/a\\"\'"'
    record = traced(place, script)
    assert record["trace"]["written_bytes"] == 2
