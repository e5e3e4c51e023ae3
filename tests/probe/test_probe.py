"""The probe as the workload of cells, and what it makes of what the hosts answer."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from burstlab.errors import NodeError, StorageError
from burstlab.probe import node
from burstlab.probe.hosts import Hosts
from burstlab.probe.report import Report
from tests.cell.running import Place

MIB = 1 << 20
PROBE = [sys.executable, "-m", "burstlab", "probe", "--mib", "4"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def probed(place: Place, *flags: str) -> dict[str, Any]:
    """The record of a cell with the probe as its workload."""
    done = place.run(*flags, run=PROBE)
    assert done.returncode == 0, done.stderr
    record = place.record()
    assert record is not None
    return record


def numbers(record: dict[str, Any]) -> dict[str, float]:
    return {metric["name"]: metric["value"] for metric in record["metrics"]}


@pytest.mark.parametrize(
    ("flags", "own_disk"),
    [
        (["--storage", "nodelocal"], 100.0),
        (["--storage", "pfs"], 0.0),
        pytest.param(["--storage", "gfarm"], 100.0, marks=pytest.mark.requires("gfarm", "fuse")),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
def test_a_cell_tells_what_its_storage_does(
    place: Place, flags: list[str], own_disk: float
) -> None:
    record = probed(place, *flags)
    found = numbers(record)
    assert found["local_share"] == own_disk
    assert all(found[name] > 0 for name in ("ready_time", "write_bandwidth", "read_bandwidth"))
    assert record["workload_facts"]["launch"] == "local"
    rows = (place.cell / "operations.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["write", "look", "fill", "read"]
    assert place.left_behind() == []


def test_virtual_nodes_share_a_disk_so_nobody_is_asked_who_keeps_what(place: Place) -> None:
    record = probed(place, "--storage", "nodelocal", "--nodes", "2")
    assert "local_share" not in numbers(record)
    assert len((place.cell / "operations.csv").read_text().splitlines()) == 1 + 4 * 2


def test_a_host_that_can_not_write_is_named(tmp_path: Path) -> None:
    asked = {"mount": str(tmp_path / "gone"), "local": str(tmp_path), "shared": True}
    asked |= {"unit_bytes": 1, "large_bytes": 1}
    with pytest.raises(NodeError, match=r"^node01: .*No such file.*gone/node01"):
        Hosts(("node01", "node02"), "local", ()).do("write", asked)


def test_a_file_that_is_read_short_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / node.LARGE).write_bytes(bytes(10))
    with pytest.raises(StorageError, match="10 bytes of 20"):
        node.read(tmp_path, {"next": "a", "large_bytes": 20})


def test_out_of_a_cell_it_says_how_it_is_called() -> None:
    done = subprocess.run(PROBE, capture_output=True, text=True, timeout=60)
    assert done.returncode == 120
    assert "not in a cell: burstlab run --storage NAME" in done.stderr


def answers(**kept: float | None) -> dict[str, dict[str, Any]]:
    return {host: {"kept_bytes": size} for host, size in kept.items()}


def test_hosts_that_share_their_disks_do_not_seem_to_keep_their_own() -> None:
    report = Report()
    placed = {"a": MIB, "b": 2 * MIB}
    report.locality(placed, answers(a=1.5 * MIB, b=1.5 * MIB), expected=True)
    assert report.metrics[0]["value"] == 75.0
    assert report.issues == ["not every host writes to its own disk: b keeps 75% of what it wrote"]
    report = Report()
    report.locality(placed, answers(a=MIB, b=2.1 * MIB), expected=True)
    assert (report.metrics[0]["value"], report.issues) == (100.0, [])


def test_a_disk_that_may_not_be_looked_at_is_not_called_empty() -> None:
    report = Report()
    report.locality({"a": MIB, "b": MIB}, answers(a=MIB, b=None), expected=True)
    assert (report.metrics, report.issues) == ([], [])
    assert report.facts == {"locality": "not known: the disk of b may not be looked at"}


def test_what_was_read_from_memory_is_no_bandwidth() -> None:
    report = Report()
    report.cache({"a": {"resident_bytes": 0}, "b": {"resident_bytes": 50}}, 100)
    assert report.facts["read"] == "from memory"
    assert report.issues == [
        "the bandwidth of reading on b is that of its memory: 50% were resident"
    ]


def test_bytes_on_other_file_systems_are_not_kept_here(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(bytes(1000))
    assert node.kept_bytes(tmp_path) == 1000
