"""On a real Slurm with slurmdbd: the record tells of its job what sacct tells of it afterwards."""

import re
from collections.abc import Iterator

import pytest

from tests.lab.cells import LabCell
from tests.lab.cluster import Cluster
from tests.polling import until

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "lab-accounting"),
    pytest.mark.slow,
]
WRITTEN = 8 << 20


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "2", "--accounting")
        yield cluster


def test_the_record_and_sacct_agree(cluster: Cluster) -> None:
    cell = LabCell(cluster, "accounted", ("node01", "node02"))
    cell.submit("nodelocal", f'head -c {WRITTEN} /dev/zero >"$BURSTLAB_MOUNT/file"')
    record = cell.finish()
    assert record and record["status"] == "ok", cell.said()
    job = record["provenance"]["scheduler"]
    until(lambda: "RUNNING" not in sacct(cell, "State"), "slurmdbd knows that it is over")
    whole, *steps = [line.split("|") for line in sacct(cell, "Submit", "Start", "TresUsageOutTot")]
    assert job["queue_wait_s"] == int(whole[1]) - int(whole[0])
    assert job["nodes"] == record["hosts"] == ["node01", "node02"]
    written = sum(int(found[1]) for step in steps if (found := re.search(r"disk=(\d+)", step[2])))
    assert WRITTEN <= job["disk_write_bytes"] <= written
    assert len(steps) == 2, "the batch step and the agents'"


def sacct(cell: LabCell, *columns: str) -> list[str]:
    """A line for the job and one for each of its steps, times in Unix seconds."""
    words = ("env", "SLURM_TIME_FORMAT=%s", "sacct", "-nP", "-o", ",".join(columns), "-j", cell.job)
    return cell.cluster.run("head", *words).splitlines()
