"""Whatever goes wrong in a cell, its record says why, and nothing of it is left.

The cells of this file run side by side, on ports of their own: none disturbs another.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab.process import end

from .running import TeraCell

pytestmark = [
    pytest.mark.requires("terasort", "hadoop"),
    pytest.mark.slow,
    pytest.mark.timeout(900),  # of the fixture: JVMs on a loaded machine
]
Cells = dict[str, TeraCell]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    """All at their ends; struck where that had to be done while they ran."""
    found: Cells = {}
    try:
        for name, nodes, parameters in (
            ("good", 2, {"spill": "mount", "size_mb": "80"}),
            ("killed", 2, {"size_mb": "500"}),
            ("corrupted", 1, {"size_mb": "10"}),
            ("narrow", 1, {"container_memory_mb": "96"}),
        ):
            root = tmp_path_factory.mktemp(name)
            found[name] = TeraCell(root).begin(nodes, **parameters)
        spills = "spill/node0[12]/usercache/*/appcache/*/container_*"
        found["good"].await_(lambda: found["good"].has(spills), "a container spills on the mount")
        kill_a_node_manager(found["killed"])
        corrupt_a_block(found["corrupted"])
        for cell in found.values():
            cell.status()
        yield found
    finally:
        for cell in found.values():
            cell.stop()


def kill_a_node_manager(cell: TeraCell) -> None:
    """Together with what it would tell; once a task of its own runs."""
    cell.await_(lambda: cell.has("generated/_temporary/*/_temporary/*/part*"), "a map writes")
    [manager] = [one for one in cell.daemons("nodemanager.NodeManager") if is_node02(one.pid)]
    end([manager], grace_s=0)


def is_node02(pid: int) -> bool:
    return "/node02/conf" in Path(f"/proc/{pid}/cmdline").read_text()


def corrupt_a_block(cell: TeraCell) -> None:
    """A byte near the end, after TeraGen and before it is read."""
    cell.await_(lambda: cell.has("generated/_SUCCESS"), "TeraGen has ended")
    with (cell.work / "generated" / "part-m-00001").open("r+b") as file:
        file.seek(-5_000, 2)
        byte = file.read(1)
        file.seek(-5_000, 2)
        file.write(bytes([byte[0] ^ 1]))


def test_a_whole_run_reports_its_times_and_tasks(cells: Cells) -> None:
    cell = cells["good"]
    assert cell.status() == 0, cell.said()
    record = cell.record()
    assert record is not None
    metrics = {one["name"]: one["value"] for one in record["metrics"]}
    assert [*metrics] == ["teragen_time", "terasort_time", "teravalidate_time"]
    assert all(value > 0 for value in metrics.values())
    facts = record["workload_facts"]
    assert (facts["rows"], facts["spill"], facts["hadoop"]) == ("800000", "mount", "3.4.2")
    assert facts["checksum"] == "61ba645716f1e", "that of these rows, whoever generates them"
    tasks = [row["operation"] for row in cell.operations()]
    assert {name: tasks.count(name) for name in tasks} == {
        "TeraGen-map": 2, "TeraSort-map": 4, "TeraSort-reduce": 1,
        "TeraValidate-map": 1, "TeraValidate-reduce": 1,
    }  # fmt: skip
    with_checksums = 40_000_000 * (1 + 4 / 512)
    generated = bytes_of(cell, "TeraGen-map", "written_bytes")
    assert all(with_checksums < size < with_checksums + 310_000 for size in generated)
    blocks = sorted(bytes_of(cell, "TeraSort-map", "read_bytes"))[2:]
    assert all(32 << 20 < size < 34_300_000 for size in blocks), "a block of 32 MiB, and checksums"
    assert cell.left_behind() == []


def bytes_of(cell: TeraCell, operation: str, column: str) -> list[int]:
    """Of each task."""
    return [int(row[column]) for row in cell.operations() if row["operation"] == operation]


def test_a_killed_node_manager_is_told_and_its_containers_go_with_it(cells: Cells) -> None:
    cell = cells["killed"]
    assert cell.status() == 1
    assert "node02: its NodeManager died (killed by SIGKILL)" in cell.reason()
    assert cell.left_behind() == []


def test_a_corrupted_block_is_told_with_its_file(cells: Cells) -> None:
    cell = cells["corrupted"]
    assert cell.status() == 1
    assert "ChecksumException: Checksum error: file:" in cell.reason()
    assert "generated/part-m-00001" in cell.reason()
    assert cell.left_behind() == []


def test_too_little_memory_for_a_container_is_told(cells: Cells) -> None:
    cell = cells["narrow"]
    assert cell.status() == 1
    assert "(TERASORT_CONTAINER_MEMORY_MB=96)" in cell.reason()
    assert cell.left_behind() == []


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("ResourceManager", "the ResourceManager died (killed by SIGKILL)"),
        ("JobHistoryServer", "the history server died (killed by SIGKILL)"),
        # What it started outlives it, and goes with the cell.
        ("terasort/node.py", "node01: its connection is lost"),
    ],
)
def test_a_killed_daemon_is_told(tmp_path: Path, word: str, why: str) -> None:
    cell = TeraCell(tmp_path).begin()
    cell.await_(lambda: cell.daemons("nodemanager.NodeManager"), "the NodeManager runs")
    assert end(cell.daemons(word), grace_s=0) == []
    assert cell.status() == 1
    assert why in cell.reason()
    assert cell.left_behind() == []


def test_a_cell_that_is_told_to_end_leaves_nothing(tmp_path: Path) -> None:
    cell = TeraCell(tmp_path).begin()
    cell.await_(lambda: cell.daemons("ResourceManager"), "daemons run")
    cell.await_(lambda: cell.daemons("NodeManager"), "the node runs")
    cell._child.send_signal(signal.SIGTERM)
    assert cell.status() == 128 + signal.SIGTERM
    assert cell.left_behind() == []


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[TeraCell]:
    """A cell whose node-local disk of 200 MiB has 1 MiB left: less than a NodeManager bears."""
    cell = TeraCell(tmp_path)
    cell.scratch.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "none", cell.scratch], check=True)
    try:
        with (tmp_path / "scratch" / "filler").open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, 199 << 20)
        yield cell
    finally:
        subprocess.run(["umount", cell.scratch], check=True)


@pytest.mark.requires("root")
def test_a_disk_that_is_too_full_is_told(full_disk: TeraCell) -> None:
    full_disk.begin()
    assert full_disk.status() == 1
    assert "localhost: its NodeManager is UNHEALTHY: 1/1 local-dirs" in full_disk.reason()
    assert "used space above threshold of 99.0%" in full_disk.reason()
    (full_disk.scratch / "filler").unlink()
    assert full_disk.left_behind() == []
