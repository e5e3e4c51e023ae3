"""Ranks on two nodes of a lab: they train, and end wherever one of them is hurt."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cells import SHARED, LabCell, Machine, await_
from tests.lab.cluster import NODES, REPOSITORY, Cluster

from .running import DEADLINE_S, labels

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "chainer", "burstio", "ssh"),
    pytest.mark.slow,
]
BOTH = NODES[:2]


@pytest.fixture(scope="module")
def cluster(images: Path) -> Iterator[Cluster]:
    """Two nodes, with the images on their parallel file system."""
    cluster = Cluster()
    try:
        cluster.must("up", "--nodes", "2")
        shutil.copytree(images, cluster.directory / "pfs/images")
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
def machines(cluster: Cluster) -> list[Machine]:
    return [Machine(cluster, node) for node in BOTH]


def train(cluster: Cluster, launch: str, **parameters: str) -> LabCell:
    """A cell on both nodes, submitted."""
    cell = LabCell(cluster, f"{launch}-{os.urandom(2).hex()}", BOTH)
    workflow = REPOSITORY / "workflows/chainermn"
    flags = ["--nodes", "2", "--cores-per-node", "1", "--check", f"{workflow}/check"]
    run = f"exec env BURSTLAB_DATA={SHARED}/images {workflow}/run"
    cell.submit("pfs", run, *flags, *labels(**parameters), launch=launch)
    return cell


def test_ranks_on_two_nodes(cluster: Cluster, machines: list[Machine]) -> None:
    cell = train(cluster, "srun", mode="lazy")
    record = cell.finish(DEADLINE_S)
    assert record is not None and record["status"] == "ok", cell.said()
    rows = (cell.seen / "operations.csv").read_text()
    assert {"node01", "node02"} == {line.split(",")[3] for line in rows.splitlines()[1:]}
    await_(lambda: not any(one.left() for one in machines), "nothing is left", limit_s=60)


def test_a_rank_is_killed_on_another_node(cluster: Cluster, machines: list[Machine]) -> None:
    cell = train(cluster, "ssh", mode="paper3", epochs="100000")
    log = cell.seen / "workload.log"
    await_(lambda: log.exists() and "epoch 2 of" in log.read_text(), "the ranks train", DEADLINE_S)
    victim = cell.pid("node02", "python", f"{REPOSITORY}/workflows/chainermn/train.py")
    os.kill(victim, signal.SIGKILL)
    record = cell.finish(DEADLINE_S)
    assert record is not None
    assert record["reason"].endswith(": rank 1 on node02 was killed by SIGKILL"), log.read_text()
    await_(lambda: not any(one.left() for one in machines), "nothing is left", limit_s=60)
