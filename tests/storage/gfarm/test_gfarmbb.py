"""The Gfarm that gfarmbb(1) starts, on this host: what it needs, what it must not end."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab.lease import MARKER
from burstlab.storage.gfarm.gfarmbb_node import CONTRIBUTED, prepare
from tests.cell.running import Place, reach
from tests.polling import until
from tests.storage.gfarm import conftest
from tests.storage.gfarm.alone import only_gfarmbb
from tests.storage.gfarm.test_cell import lose_a_file

pytestmark = [pytest.mark.requires("gfarm"), pytest.mark.slow]

OPTION = ("--storage", "gfarm", "-o", "launcher=gfarmbb")


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with only_gfarmbb():
        yield


def test_its_pkill_ends_this_cells_processes_only(tmp_path: Path) -> None:
    gfarm = conftest.prepare(tmp_path)
    try:
        node = gfarm.node
        prepare(node, str(gfarm.mount))
        (tmp_path / "gfsd").symlink_to("/bin/sleep")
        ours, others = (
            subprocess.Popen([tmp_path / "gfsd", "60"], env={MARKER: mark})
            for mark in (node.lease.id, f"{node.lease.id}.other")
        )
        named = subprocess.Popen(["sleep", "60"], env={MARKER: node.lease.id})
        path = f"{node.host.local_dir}/gfarm/bin:/usr/bin:/bin"
        subprocess.run(["pkill", "gfsd"], env={MARKER: node.lease.id, "PATH": path}, check=False)
        assert ours.wait(10) == -signal.SIGTERM
        assert (others.poll(), named.poll()) == (None, None)
    finally:
        for child in (others, named):
            child.kill()
            child.wait(10)
        gfarm.take_down()


def test_a_mount_that_gfarmbb_does_not_miss_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CONTRIBUTED:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    place = Place(tmp_path / "place")
    place.root.mkdir()
    done = place.run(*OPTION, run=["true"])
    record = place.record()
    assert record is not None
    assert (done.returncode, record["status"]) == (122, "failed"), done.stderr
    assert "gfarmbb ended well, and" in record["reason"]
    assert "is not mounted" in record["reason"]
    assert place.left_behind() == []


def test_a_step_that_fails_is_told_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config-gfsd").write_text("#!/bin/sh\necho this disk is strange >&2; exit 3\n")
    (tmp_path / "config-gfsd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    place = Place(tmp_path / "place")
    place.root.mkdir()
    place.run(*OPTION, run=["true"])
    record = place.record()
    assert record is not None
    assert record["status"] == "failed"
    assert "config-gfsd" in record["reason"]
    assert "exit status 3): this disk is strange" in record["reason"]
    assert place.left_behind() == []


def test_a_file_written_in_vain_fails_its_cell_too(tmp_path: Path) -> None:
    lose_a_file(Place(tmp_path), *OPTION[2:])


def test_paths_that_gfarmbb_would_take_apart_are_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "two words")
    place.root.mkdir()
    done = place.run(*OPTION, run=["true"])
    record = place.record()
    assert record is not None
    assert (done.returncode, record["status"]) == (0, "skipped")
    assert "gfarmbb does not quote paths" in record["reason"]


def in_phase(place: Place, phase: str) -> subprocess.Popen[str]:
    """A cell in the middle of a phase."""
    cell = place.start(*OPTION, run=["sleep", "60"])
    reach(cell, phase)
    if phase == "provision":
        until(lambda: list(place.scratch.glob("*/*/gfarm/bb/etc/gfmd.conf")), "gfarmbb works")
    return cell


@pytest.mark.parametrize("phase", ["provision", "run"])
def test_a_killed_cell_is_reaped(tmp_path: Path, phase: str) -> None:
    place = Place(tmp_path)
    cell = in_phase(place, phase)
    cell.kill()
    cell.communicate()
    assert place.reap().returncode == 0
    assert place.left_behind() == []


@pytest.mark.parametrize("phase", ["provision", "run"])
def test_a_stopped_cell_leaves_nothing(tmp_path: Path, phase: str) -> None:
    place = Place(tmp_path)
    cell = in_phase(place, phase)
    cell.terminate()
    _, said = cell.communicate(timeout=60)
    record = place.record()
    assert record is not None, said
    assert (cell.returncode, record["status"]) == (143, "failed"), said
    assert place.left_behind() == []


STUBBORN = """\
#!/bin/sh
# A gfarmbb whose start is never done, nor ended by anybody: -mpi COMMAND ... MODE
for mode; do :; done
while [ "$mode" = start ]; do "$2" sh -c 'sleep 0.01'; done
for step in 1 2 3 4 5 6 7 8; do "$2" sh -c 'sleep 0.01' || exit; done
"""


def test_a_start_that_was_broken_off_does_not_speak_in_the_stops_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "bin" / "gfarmbb"
    command.parent.mkdir()
    command.write_text(STUBBORN)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    place = Place(tmp_path)
    cell = place.start(*OPTION, run=["true"])
    until(lambda: list(place.scratch.glob("*/*/gfarm/gfarmbb.log")), "the start is at work")
    cell.terminate()
    _, said = cell.communicate(timeout=60)
    record = place.record()
    assert record is not None, said
    assert (record["reason"], place.left_behind()) == ("stopped by SIGTERM", [])
    assert not [issue for issue in record["issues"] if "teardown" in issue], said
