"""A trace of Montage on two nodes of a lab: it holds the commands of both."""

import csv
from collections.abc import Iterator

import pytest

from tests.lab.cells import SHARED, LabCell
from tests.lab.cluster import NODES, REPOSITORY, Cluster

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "montage", "trace"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.must("up", "--nodes", "2")
        yield cluster
    finally:
        cluster.remove()


def test_a_workload_on_two_nodes_is_traced_on_both(cluster: Cluster) -> None:
    from burstlab.dataset.model import SyntheticTiles
    from burstlab.dataset.synthetic import make_tiles

    size = {"tile_width": 64, "tile_height": 64, "stars_per_tile": 5}
    make_tiles(cluster.directory / "pfs/tiles", SyntheticTiles(columns=3, rows=2, **size))
    cell = LabCell(cluster, "traced", NODES[:2])
    run = f"{REPOSITORY}/workflows/montage/run --remote srun"
    script = f"exec env BURSTLAB_DATA={SHARED}/tiles {run}"
    cell.submit("pfs", script, "--cores-per-node", "2", "--trace-io")
    record = cell.finish(180.0)
    assert record is not None and record["status"] == "ok", cell.said()
    assert record["trace"]["hosts"] == list(NODES[:2])
    assert not any("trace of" in issue or "only, of" in issue for issue in record["issues"])
    with (cell.seen / "trace-files.csv").open(newline="") as opened:
        rows = [row for row in csv.DictReader(opened) if row["place"] == "work"]
    assert {row["host"] for row in rows if row["program"] == "mProjectPP"} == set(NODES[:2])
    written = {row["path"] for row in rows if int(row["written_bytes"])}
    assert "mosaic.fits" in written
