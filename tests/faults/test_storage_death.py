"""A storage that dies or fills up under a cell: the true reason is told, and nothing is left."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cell.running import Place, reach
from tests.polling import until

WRITE_FOR_EVER = (
    'cd "$BURSTLAB_MOUNT" && i=0 && while :; do i=$((i+1)); head -c 100000 /dev/zero >f$i; done'
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def small_disk(place: Place) -> Iterator[Path]:
    """Node-local scratch of 4 MB."""
    place.scratch.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", place.scratch], check=True)
    yield place.scratch
    subprocess.run(["umount", place.scratch], check=True)


def daemon(place: Place, name: str) -> int | None:
    """Pid of the cell's daemon of that name: the one that no other of its name has forked."""
    named: dict[int, int] = {}
    for pid in place.processes():
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                stat = Path(f"/proc/{pid}/stat").read_text()
                named[pid] = int(stat.rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    return next((pid for pid, parent in named.items() if parent not in named), None)


@pytest.mark.requires("fuse", "gfarm")
@pytest.mark.parametrize("name", ["gfsd", "gfmd", "gfarm2fs"])
@pytest.mark.slow
def test_a_gfarm_daemon_killed_while_the_workload_writes(place: Place, name: str) -> None:
    cell = place.start("--storage", "gfarm", run=["sh", "-c", WRITE_FOR_EVER])
    reach(cell, "run")
    pid = until(lambda: daemon(place, name), f"{name} runs")
    os.kill(pid, signal.SIGKILL)
    _, said = cell.communicate(timeout=60)
    record = place.record()
    assert record is not None, said
    assert (cell.returncode, record["status"]) == (122, "failed"), said
    assert f"{name} died" in record["reason"]
    assert place.left_behind() == []


@pytest.mark.requires("fuse", "gfarm")
def test_a_gfsd_that_dies_as_the_workload_ends_is_no_success(place: Place) -> None:
    """write, fsync and close have all succeeded by then, and the file is lost all the same."""
    script = 'cd "$BURSTLAB_MOUNT" && head -c 5000000 /dev/zero >file; kill -9 $(cat "$1")'
    note = place.root / "gfsd.pid"
    wait = f'while [ ! -s "{note}" ]; do sleep 0.02; done; {script}'
    cell = place.start("--storage", "gfarm", run=["sh", "-c", wait, "sh", note])
    pid = until(lambda: daemon(place, "gfsd"), "gfsd runs")
    note.write_text(str(pid))
    _, said = cell.communicate(timeout=60)
    record = place.record()
    assert record is not None
    assert record["status"] == "failed", said
    assert "gfsd" in record["reason"]
    assert place.left_behind() == []


@pytest.mark.requires("root")
def test_stage_in_to_a_full_disk(place: Place, small_disk: Path, tmp_path: Path) -> None:
    from burstlab.dataset.manifest import members
    from burstlab.dataset.writing import scan, write_manifest

    root = tmp_path / "large"
    root.mkdir()
    for number in range(6):
        (root / f"{number}.dat").write_bytes(os.urandom(1_000_000))
    path = tmp_path / "manifest.json"
    entries = scan(root, members(root, ["*"]))
    write_manifest(
        path, entries, name="large", source="synthetic", details={}, root=root, patterns=["*"]
    )
    done = place.run(
        *("--storage", "nodelocal", "--dataset", path, "--staging", "eager"), run=["true"]
    )
    assert done.returncode == 123
    record = place.record()
    assert record is not None
    assert "no room in the target: 6000000 bytes are wanted" in record["reason"]
    assert place.left_behind() == []


@pytest.mark.requires("root")
def test_the_workload_fills_the_disk(place: Place, small_disk: Path) -> None:
    script = 'head -c 9000000 /dev/zero >"$BURSTLAB_MOUNT/file"'
    done = place.run("--storage", "nodelocal", run=["sh", "-c", script])
    assert done.returncode == 1
    assert "No space left on device" in done.stderr, "the first lines of its output say why"
    assert place.left_behind() == []


def test_the_source_vanishes_while_it_is_staged(place: Place, tiny_manifest: Path) -> None:
    victim = tiny_manifest.parent / "tiny" / "3.dat"
    cell = place.start(
        *("--storage", "pfs", "--pfs", "emulated", "--pfs-option", "metadata_latency_ms=40"),
        *("--dataset", tiny_manifest, "--staging", "eager"),
        run=["true"],
    )
    reach(cell, "provision")
    victim.unlink()
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 123, said
    record = place.record()
    assert record is not None
    assert "3.dat" in record["reason"]
    assert place.left_behind() == []
