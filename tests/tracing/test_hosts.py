"""Traces of what runs on other hosts: behind a real ssh, on this machine."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burstlab.tracing.cell import CellTrace
from tests.cell.running import Place
from tests.launch.test_ssh import HOST, Sshd, start, through

pytestmark = pytest.mark.requires("trace", "ssh")

TRACED = f"""\
eval "set -- $BURSTLAB_LAUNCH_OPTIONS"
ssh "$@" {HOST} "$BURSTLAB_TRACE dd if=/dev/zero of=$BURSTLAB_MOUNT/far bs=5000 count=1 status=none"
"""


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    daemon = Sshd(tmp_path / "sshd")
    yield daemon
    daemon.daemon.terminate()
    daemon.daemon.wait()


def record(tmp_path: Path, sshd: Sshd, script: str) -> dict[str, Any]:
    place = Place(tmp_path)
    cell = start(place, [*through(sshd), "--trace-io"], script)
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 0, said
    assert place.left_behind() == []
    found = place.record()
    assert found is not None
    return found


def test_a_command_on_another_host_is_traced_by_the_prefix(tmp_path: Path, sshd: Sshd) -> None:
    assert record(tmp_path, sshd, TRACED)["trace"]["written_bytes"] == 5000


@pytest.mark.slow
def test_without_the_prefix_it_is_not(tmp_path: Path, sshd: Sshd) -> None:
    plain = TRACED.replace("$BURSTLAB_TRACE ", "")
    assert record(tmp_path, sshd, plain)["trace"]["written_bytes"] == 0


def test_hosts_without_a_trace_and_cut_ones_are_told(tmp_path: Path) -> None:
    trace = CellTrace(tmp_path, "strace")
    parts = tmp_path / "trace"
    parts.mkdir()
    row = [1, "dd", "work", "a", 1, 10, 2, 20]
    part = {"files": [row], "requests": [], "unseen": [], "no_files": [0, 0], "whole": True}
    part["tracer_cpu_s"] = 1.5
    for number in (1, 2):
        (parts / f"n1.{number}.json").write_text(json.dumps({"host": "n1", **part}))
    (parts / "n2.7.json").touch()
    facts, issues = trace.collect(hosts=4)
    assert facts["read_bytes"] == 20 and facts["tracer_cpu_s"] == 3.0 and facts["hosts"] == ["n1"]
    assert "the trace of n2 is not whole: its tracer ended early" in issues
    assert any("traced on n1, n2 only, of 4 hosts" in issue for issue in issues)
    processes = [line.split(",")[1] for line in (tmp_path / "trace-files.csv").open()]
    assert processes == ["process", "1", "2"], "those of different tracers are different"


def test_the_prefix_names_what_the_host_must_have(tmp_path: Path) -> None:
    words = CellTrace(tmp_path, "strace").prefix(
        {"BURSTLAB_MOUNT": "/m/work", "BURSTLAB_DATA": "", "BURSTLAB_LOCAL": "/l"}
    )
    assert words[0] == sys.executable
    assert words[-4:] == ["work=/m/work", "local=/l", f"cell={tmp_path}", "--"]
