"""Agents on two nodes of a lab that read for one another, as a cell starts them."""

import sys
from collections.abc import Iterator

import pytest

from burstlab.dataset.writing import scan, write_manifest
from tests.burstio import prefetch_set
from tests.burstio.prefetch_set import COUNT, content
from tests.lab.cells import SHARED, LabCell
from tests.lab.cluster import NODES, Cluster

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "burstio", "fuse"),
    pytest.mark.slow,
]
# Each node reads every sample, in an order of its own.
READ_ALL = """
import os, burstio
with burstio.connect(os.environ["BURSTLAB_AGENT"]) as client:
    order = burstio.shuffled(client.count, int(os.environ["SLURM_PROCID"]))
    with burstio.Reader(client, order, 16, epochs=2) as reader:
        print(sum(len(sample) for batch in reader for _, sample in batch))
"""
READ_BYTES = 2 * sum(len(content(i)) for i in range(COUNT))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes, with a data set on their parallel file system."""
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "2")
        shared = cluster.directory / "pfs"
        root = shared / "data"
        files = scan(root, prefetch_set.make(root))
        write_manifest(
            shared / "manifest.json", files, name="numbers", source="given", details={}, root=root,
            patterns=("**",),
        )  # fmt: skip
        (shared / "read_all.py").write_text(READ_ALL)
        yield cluster


@pytest.mark.parametrize(("flags", "opens"), [(["--peers"], COUNT), ([], 2 * COUNT)])
def test_two_nodes_read_the_pfs_once_with_peers(
    cluster: Cluster, flags: list[str], opens: int
) -> None:
    cell = LabCell(cluster, f"peers-{len(flags)}", NODES[:2])
    lazy = ["--staging", "lazy", "--dataset", f"{SHARED}/manifest.json", *flags]
    run = f"srun --overlap -N2 -n2 {sys.executable} {SHARED}/read_all.py"
    cell.submit("nodelocal", run, "--nodes", "2", *lazy)
    record = cell.finish(120)
    assert record is not None and record["status"] == "ok", cell.said()
    assert (cell.seen / "workload.log").read_text().split() == 2 * [str(READ_BYTES)]
    counted = record["dataset"]["lazy"]
    assert sorted(counted) == ["node01", "node02"]
    assert sum(node["source_opens"] for node in counted.values()) == opens
    assert (sum(node["from_peers"] for node in counted.values()) > 0) == bool(flags)
    assert not any("peers" in issue for issue in record["issues"])
    assert "2 hosts on 1 machine(s): what one does is load on others" in record["issues"]
    assert not any("others used" in issue for issue in record["issues"]), (
        "srun's tasks are the cell's"
    )
    assert record["dataset"]["peers"] == bool(flags)
