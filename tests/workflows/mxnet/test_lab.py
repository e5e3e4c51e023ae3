"""Two ranks on two nodes of a lab: reached as the cell reaches them, ended wherever one is hurt."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cells import SHARED, LabCell, Machine, await_, command_line, pids_on
from tests.lab.cluster import NODES, REPOSITORY, Cluster

from .running import DEADLINE_S, labels

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "mxnet", "ssh"),
    pytest.mark.slow,
]
BOTH = NODES[:2]


@pytest.fixture(scope="module")
def cluster(images: Path) -> Iterator[Cluster]:
    """Two nodes, with the images on their parallel file system."""
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "2")
        shutil.copytree(images, cluster.directory / "pfs/images")
        yield cluster


@pytest.fixture
def machines(cluster: Cluster) -> list[Machine]:
    return [Machine(cluster, node) for node in BOTH]


def train(
    cluster: Cluster, storage: str, launch: str, data: str = f"{SHARED}/images", **parameters: str
) -> LabCell:
    """A cell on both nodes, submitted."""
    cell = LabCell(cluster, f"{storage}-{launch}-{os.urandom(2).hex()}", BOTH)
    workflow = REPOSITORY / "workflows/mxnet"
    flags = ["--nodes", "2", "--cores-per-node", "1", "--check", f"{workflow}/check"]
    run = f"exec env BURSTLAB_DATA={data} {workflow}/run"
    cell.submit(storage, run, *flags, *labels(**parameters), launch=launch)
    return cell


def train_py(pid: int) -> bool:
    return any(word.endswith("mxnet/train.py") for word in command_line(pid)[1:2])


@pytest.mark.parametrize(
    ("storage", "launch", "format"),
    [
        ("pfs", "ssh", "jpeg"),
        ("nodelocal", "srun", "recordio"),
        pytest.param("gfarm", "mpirun", "recordio", marks=pytest.mark.requires("gfarm")),
    ],
)
def test_ranks_on_two_nodes(
    cluster: Cluster, machines: list[Machine], storage: str, launch: str, format: str
) -> None:
    cell = train(cluster, storage, launch, format=format)
    record = cell.finish(DEADLINE_S)
    assert record is not None and record["status"] == "ok", cell.said()
    rows = (cell.seen / "operations.csv").read_text()
    assert {"node01", "node02"} == {line.split(",")[3] for line in rows.splitlines()[1:]}
    await_(lambda: not any(one.left() for one in machines), "nothing is left", limit_s=30)


@pytest.mark.parametrize("launch", ["ssh", "srun"])
def test_a_rank_is_killed_on_another_node(
    cluster: Cluster, machines: list[Machine], launch: str
) -> None:
    cell = train(cluster, "pfs", launch, epochs="100000")
    log = cell.seen / "workload.log"
    await_(lambda: log.exists() and "epoch 1 of" in log.read_text(), "the ranks train", DEADLINE_S)
    [victim] = [pid for pid in pids_on(cluster, "node02") if train_py(pid)]
    os.kill(victim, signal.SIGKILL)
    record = cell.finish(DEADLINE_S)
    assert record is not None
    assert record["reason"].endswith(": rank 1 on node02 was killed by SIGKILL"), log.read_text()
    await_(lambda: not any(one.left() for one in machines), "nothing is left", limit_s=30)


def test_mpirun_is_killed_and_leaves_no_rank_anywhere(
    cluster: Cluster, machines: list[Machine]
) -> None:
    cell = train(cluster, "pfs", "ssh", epochs="100000")
    log = cell.seen / "workload.log"
    await_(lambda: log.exists() and "epoch 1 of" in log.read_text(), "the ranks train", DEADLINE_S)
    os.kill(cell.pid("node01", "mpirun"), signal.SIGKILL)
    record = cell.finish(DEADLINE_S)
    assert record is not None
    assert record["reason"].endswith(": mpirun: killed by SIGKILL")
    await_(lambda: not any(one.left() for one in machines), "nothing is left", limit_s=30)


def test_a_class_folder_is_missing_on_one_node_only(
    cluster: Cluster, machines: list[Machine], images: Path
) -> None:
    for machine in machines:
        shutil.copytree(images, machine.root() / "local/images")
    (machines[1].root() / "local/images/n90000003").rename(machines[1].root() / "local/away")
    cell = train(cluster, "pfs", "ssh", data="/local/images")
    record = cell.finish(DEADLINE_S)
    for machine in machines:
        shutil.rmtree(machine.root() / "local/images")
    shutil.rmtree(machines[1].root() / "local/away")
    assert record is not None
    told = ": rank 1 on node02: /local/images: the class folder n90000003 is missing"
    assert record["reason"].endswith(told)
    await_(lambda: not any(one.left() for one in machines), "nothing is left", limit_s=30)
