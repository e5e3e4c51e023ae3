"""A cell told to stop, or killed, in each of its phases: nothing of it is left.

The storage is the emulated PFS, slow enough that every phase can be met; each phase is met by
watching what the cell itself says on stderr.
"""

import signal
import subprocess
from pathlib import Path

import pytest

from burstlab.dataset.manifest import Manifest
from tests.cell.running import Place, reach
from tests.polling import until

PHASES = ("pfs", "provision", "stage_in", "cache", "run", "check", "drain", "stage_out", "teardown")
STOPS = {"SIGTERM": 143, "SIGINT": 130, "SIGALRM": 124}  # SIGALRM is how the time limit comes
# of the everyday loop: the other phases go the same ways
QUICK_STOPS = [("SIGTERM", "provision"), ("SIGINT", "stage_in"), ("SIGALRM", "run")]
QUICK_STOPS += [("SIGTERM", "teardown")]
QUICK_KILLS = ("provision", "run")

pytestmark = pytest.mark.requires("fuse")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def slow_cell(place: Place, manifest: Path) -> subprocess.Popen[str]:
    """Every phase takes some tenths of a second: 15 ms for each metadata operation."""
    work = 'cd "$BURSTLAB_MOUNT" && touch 1 2 3 4 5; sleep 0.4'
    return place.start(
        *("--storage", "pfs", "--pfs", "emulated", "--pfs-option", "metadata_latency_ms=15"),
        *("--dataset", manifest, "--staging", "eager", "--cache", "cold"),
        *("--check", "sleep 0.3", "--stage-out", "[12345]"),
        run=["sh", "-c", work],
    )


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        pytest.param(name, phase, marks=() if (name, phase) in QUICK_STOPS else pytest.mark.slow)
        for name in STOPS
        for phase in PHASES
    ],
)
def test_told_to_stop(place: Place, tiny_manifest: Path, phase: str, name: str) -> None:
    cell = slow_cell(place, tiny_manifest)
    reach(cell, phase)
    cell.send_signal(getattr(signal, name))
    _, said = cell.communicate(timeout=60)
    record = place.record()
    assert record is not None
    if phase == "teardown":  # nothing is left to stop: the cell has what it came for
        assert (cell.returncode, record["status"]) == (0, "ok"), said
    else:
        assert (cell.returncode, record["status"]) == (STOPS[name], "failed"), said
        expected = "time limit" if name == "SIGALRM" else f"stopped by {name}"
        assert record["reason"].startswith(expected)
        assert f"FAILED in {phase}: {record['reason']}" in said
    assert place.left_behind() == []


@pytest.mark.parametrize(
    "phase",
    [pytest.param(one, marks=() if one in QUICK_KILLS else pytest.mark.slow) for one in PHASES],
)
@pytest.mark.slow
def test_killed_then_reaped(place: Place, tiny_manifest: Path, phase: str) -> None:
    cell = slow_cell(place, tiny_manifest)
    reach(cell, phase)
    cell.kill()
    cell.communicate(timeout=60)
    assert place.record() is None, "a killed cell has no record"
    reaped = place.reap()
    assert reaped.returncode == 0, reaped.stderr
    assert place.left_behind() == []
    again = slow_cell(place, tiny_manifest)
    _, said = again.communicate(timeout=60)
    assert again.returncode == 0, said


def test_the_next_cell_reaps_what_a_killed_one_left(place: Place, tiny_manifest: Path) -> None:
    cell = slow_cell(place, tiny_manifest)
    reach(cell, "run")
    cell.kill()
    cell.communicate(timeout=60)
    assert place.left_behind()
    done = place.run("--storage", "nodelocal", run=["true"])
    assert done.returncode == 0, done.stderr
    assert place.left_behind() == []


@pytest.mark.slow
def test_two_cells_on_one_host(tmp_path: Path, tiny_manifest: Path) -> None:
    places = [Place(tmp_path / name) for name in ("one", "two")]
    for place in places:
        place.root.mkdir()
    cells = [slow_cell(place, tiny_manifest) for place in places]
    reach(cells[0], "run")
    cells[0].kill()
    cells[0].communicate(timeout=60)
    assert places[0].reap().returncode == 0
    _, said = cells[1].communicate(timeout=60)
    assert cells[1].returncode == 0, said
    assert [place.left_behind() for place in places] == [[], []]


def test_the_emulated_pfs_dies_while_the_workload_runs(place: Place, tiny_manifest: Path) -> None:
    cell = slow_cell(place, tiny_manifest)
    reach(cell, "run")
    emulator = until(lambda: emulators(place), "the emulator's process")[0]
    Path(f"/proc/{emulator}/stat").read_text()
    signal.pidfd_send_signal(__import__("os").pidfd_open(emulator), signal.SIGKILL)
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 122, said
    record = place.record()
    assert record is not None
    assert record["reason"] == "emulated pfs died (killed by SIGKILL)"
    assert place.left_behind() == []


def emulators(place: Place) -> list[int]:
    """Processes of this place that serve the emulated PFS."""
    found = []
    for pid in place.processes():
        if b"burstlab.pfs" in Path(f"/proc/{pid}/cmdline").read_bytes():
            found.append(pid)
    return found


def test_a_file_of_the_data_set_is_cut_before_the_cell(
    place: Place, tiny_manifest: Path, tiny_dataset: Manifest
) -> None:
    victim = sorted(Path(tiny_dataset.root).glob("*"))[0]
    victim.write_bytes(victim.read_bytes()[:-1])
    done = slow_cell(place, tiny_manifest)
    _, said = done.communicate(timeout=60)
    assert done.returncode == 120
    assert victim.name in said
    assert place.record() is None
    assert place.left_behind() == []
