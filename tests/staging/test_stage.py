"""`burstlab stage` on one host: complete, resumable, and never torn, whatever dies."""

import json
import os
import pty
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.polling import until
from tests.staging.conftest import DEADLINE_S, Stage

pytestmark = pytest.mark.requires("burstio")


def test_everything_arrives_and_is_counted(stage: Stage) -> None:
    done = stage.run()
    assert done.returncode == 0, done.stderr
    assert f"{stage.target}: 60 files of 60, " in done.stdout
    assert stage.found() == stage.files
    assert stage.partials() == []


def test_what_is_there_is_not_copied_again(stage: Stage) -> None:
    assert stage.run().returncode == 0
    before = {path: path.stat().st_ino for path in stage.target.rglob("*") if path.is_file()}
    torn = stage.target / "d3/e1/f3"
    torn.write_bytes(bytes(70_000))
    done = stage.run()
    assert "(59 were there)" in done.stdout
    after = {path: path.stat().st_ino for path in before}
    assert {path for path in before if before[path] != after[path]} == {torn}
    assert stage.found() == stage.files


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: path.unlink(), "missing in the source"),
        (lambda path: os.truncate(path, 69_999), "truncated: 69999 of 70000 bytes"),
        (lambda path: path.write_bytes(bytes(70_000)), "changed: has another checksum"),
        (lambda path: path.write_bytes(bytes(70_001)), "changed: longer than 70000 bytes"),
    ],
    ids=["missing", "truncated", "changed", "longer"],
)
def test_first_bad_file_is_named(stage: Stage, spoil, told: str) -> None:  # type: ignore[no-untyped-def]
    spoil(stage.source / "d3/e1/f3")
    done = stage.run()
    assert done.returncode == 123
    assert done.stderr == f"burstlab stage: node01: d3/e1/f3: {told}\n"
    assert stage.found().items() <= stage.files.items()
    assert stage.partials() == []


def test_unreadable_file_is_named(stage: Stage) -> None:
    (stage.source / "d3/e1/f3").unlink()
    (stage.source / "d3/e1/f3").symlink_to("f3")
    told = "d3/e1/f3: can't be read: Too many levels of symbolic links"
    assert told in stage.run().stderr


def test_target_that_can_not_be_made_is_named(stage: Stage) -> None:
    stage.target.parent.mkdir()
    stage.target.write_text("a file")
    done = stage.run()
    assert done.returncode == 123
    assert f"{stage.target}: can't be written in the target: File exists" in done.stderr


@pytest.mark.slow
def test_killed_at_random_points_nothing_is_torn_and_the_next_goes_on(stage: Stage) -> None:
    """kill -9: no handler runs. What has its name must be whole at every moment."""
    stage.make(400)
    chance = random.Random(7)
    cut = 0
    for _ in range(8):
        wanted = len(stage.found()) + chance.randrange(1, 120)
        still_ran = stage.killed_at(wanted, pause_s=chance.random() / 100)
        found = stage.found()
        assert found.items() <= stage.files.items()
        cut += still_ran and 0 < len(found) < 400
    assert cut, "each had ended before it was killed"
    assert stage.run().returncode == 0
    assert stage.found() == stage.files
    assert stage.partials() == []


@pytest.mark.slow
def test_a_signal_stops_it_in_order(stage: Stage, tmp_path: Path) -> None:
    """The first file is a pipe nobody writes to: a source that hangs."""
    hanging = stage.source / "d0/e0/f0"
    hanging.unlink()
    os.mkfifo(hanging)
    running = stage.start()
    until(lambda: len(stage.found()) == 59, "all others")
    running.send_signal(signal.SIGTERM)
    assert "stopped by SIGTERM; stage again to go on" in running.communicate(timeout=30)[0]
    assert running.returncode == 128 + signal.SIGTERM
    assert stage.partials() == []


@pytest.mark.requires("root")
def test_full_disk_is_told_before_and_while_it_fills(stage: Stage) -> None:
    stage.target.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", stage.target], check=True, timeout=30
    )
    try:
        done = stage.run()
        assert done.returncode == 123
        assert "no room in the target: " in done.stderr
        assert "bytes are wanted, 4194304 are free" in done.stderr
        done = stage.run()  # its directories are there now: what is missing is not known before
        assert done.returncode == 123
        assert "no room in the target: No space left on device" in done.stderr
        assert stage.found().items() <= stage.files.items()
        assert stage.partials() == []
    finally:
        subprocess.run(["umount", stage.target], check=True, timeout=30)


def test_who_watches_sees_rates_and_who_does_not_sees_none(stage: Stage) -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            stage.command(), env=stage.environment(TERM="xterm", COLUMNS="120"), stderr=theirs,
            stdout=subprocess.PIPE, timeout=DEADLINE_S,
        )  # fmt: skip
        assert done.returncode == 0
        shown = os.read(ours, 1 << 16).decode()
        assert "files/s" in shown
        assert "MB" in shown
    finally:
        os.close(ours)
        os.close(theirs)
    assert stage.run().stderr == ""


def test_as_a_workload_it_reports_its_times(stage: Stage, tmp_path: Path) -> None:
    done = stage.run(BURSTLAB_CELL_DIR=str(tmp_path))
    assert done.returncode == 0
    metrics = {
        one["name"]: one["value"] for one in json.loads((tmp_path / "metrics.json").read_text())
    }
    assert set(metrics) == {"staging_time", "staging_copy_time", "staging_rate"}
    assert json.loads((tmp_path / "facts.json").read_text())["method"] == "copy"


def test_burstlab_run_does_not_load_burstio() -> None:
    program = "import sys, burstlab.cli.run; sys.exit('burstio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
