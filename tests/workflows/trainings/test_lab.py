"""Ranks on two nodes of a lab: reached as the cell reaches them, ended wherever one is hurt."""

import csv
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cells import SHARED, LabCell, Machine, await_
from tests.lab.cluster import NODES, REPOSITORY, Cluster

from .running import CHAINERMN, DDP, DEADLINE_S, MXNET, Workload

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "ssh"),
    pytest.mark.slow,
]
BOTH = NODES[:2]
requires = pytest.mark.requires
MX, CH, PT = [requires("mxnet")], [requires("chainer", "burstio")], [requires("torch", "burstio")]
RECORDS = {"format": "recordio"}
# Which process is struck: on which node, its command line, and what the record then tells.
RANK_1 = ("node02", ("python", "{program}"), "rank 1 on node02 was killed by SIGKILL")
MPIRUN = ("node01", ("mpirun",), "mpirun: killed by SIGKILL")


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
    cluster: Cluster,
    workload: Workload,
    storage: str,
    launch: str,
    *more: str,
    data: str = f"{SHARED}/images",
    **parameters: str,
) -> LabCell:
    """A cell on both nodes, submitted."""
    cell = LabCell(cluster, f"{storage}-{launch}-{os.urandom(2).hex()}", BOTH)
    workflow = REPOSITORY / "workflows" / workload.name
    flags = ["--nodes", "2", "--cores-per-node", "1", "--check", f"{workflow}/check"]
    run = f"exec env BURSTLAB_DATA={data} {workflow}/run"
    cell.submit(storage, run, *flags, *more, *workload.labels(**parameters), launch=launch)
    return cell


def left_nothing(machines: list[Machine]) -> None:
    def left() -> list[str]:
        return [what for one in machines for what in one.left()]

    try:
        await_(lambda: not left(), "nothing is left", limit_s=60)
    except AssertionError:
        pytest.fail(f"something is left: {left()}")


@pytest.mark.parametrize(
    ("workload", "storage", "launch", "parameters"),
    [
        pytest.param(MXNET, "pfs", "ssh", {"collectives": "gloo"}, marks=MX),
        pytest.param(MXNET, "nodelocal", "srun", RECORDS, marks=MX),
        pytest.param(MXNET, "gfarm", "mpirun", RECORDS, marks=[*MX, requires("gfarm")]),
        pytest.param(CHAINERMN, "pfs", "srun", {"mode": "lazy"}, marks=CH),
        pytest.param(DDP, "pfs", "srun", {"mode": "lazy"}, marks=PT),
    ],
)
def test_ranks_on_two_nodes(
    cluster: Cluster,
    machines: list[Machine],
    workload: Workload,
    storage: str,
    launch: str,
    parameters: dict[str, str],
) -> None:
    cell = train(cluster, workload, storage, launch, **parameters)
    record = cell.finish(DEADLINE_S)
    assert record is not None and record["status"] == "ok", cell.said()
    rows = (cell.seen / "operations.csv").read_text()
    assert {"node01", "node02"} == {line.split(",")[3] for line in rows.splitlines()[1:]}
    left_nothing(machines)


@requires("mxnet", "trace")
def test_what_ranks_read_is_counted_on_every_node(
    cluster: Cluster, machines: list[Machine], images: Path
) -> None:
    cell = train(cluster, MXNET, "pfs", "ssh", "--trace-io")
    record = cell.finish(DEADLINE_S)
    assert record is not None and record["status"] == "ok", cell.said()
    assert sorted(record["trace"]["hosts"]) == list(BOTH)
    with (cell.seen / "trace-files.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["path"].endswith(".JPEG")]
    assert {row["host"] for row in rows} == set(BOTH)
    whole = sum(path.stat().st_size for path in images.glob("*/*.JPEG"))
    assert sum(int(row["read_bytes"]) for row in rows) == 2 * whole, "two epochs"
    left_nothing(machines)


@pytest.mark.parametrize(
    ("workload", "launch", "parameters", "machine", "words", "told"),
    [
        pytest.param(MXNET, "ssh", {}, *RANK_1, marks=MX),
        pytest.param(MXNET, "srun", {"collectives": "gloo"}, *RANK_1, marks=MX),
        pytest.param(MXNET, "ssh", {}, *MPIRUN, marks=MX),
        pytest.param(CHAINERMN, "ssh", {"mode": "paper3"}, *RANK_1, marks=CH),
        pytest.param(DDP, "ssh", {"mode": "paper3"}, *RANK_1, marks=PT),
    ],
)
def test_a_process_is_killed(
    cluster: Cluster,
    machines: list[Machine],
    workload: Workload,
    launch: str,
    parameters: dict[str, str],
    machine: str,
    words: tuple[str, ...],
    told: str,
) -> None:
    cell = train(cluster, workload, "pfs", launch, **parameters, epochs="100000")
    log = cell.seen / "workload.log"

    def trains() -> bool:
        return log.exists() and "epoch 1 of" in log.read_text()

    await_(lambda: trains() or cell.ended(), "the ranks train", DEADLINE_S)
    assert trains(), cell.said()
    program = REPOSITORY / "workflows" / workload.name / "train.py"
    victim = cell.pid(machine, *(word.format(program=program) for word in words))
    os.kill(victim, signal.SIGKILL)
    record = cell.finish(DEADLINE_S)
    assert record is not None
    assert record["reason"].endswith(f": {told}"), log.read_text()
    left_nothing(machines)


@requires("mxnet")
def test_a_class_folder_is_missing_on_one_node_only(
    cluster: Cluster, machines: list[Machine], images: Path
) -> None:
    for machine in machines:
        shutil.copytree(images, machine.root() / "local/images")
    (machines[1].root() / "local/images/n90000003").rename(machines[1].root() / "local/away")
    cell = train(cluster, MXNET, "pfs", "ssh", data="/local/images")
    record = cell.finish(DEADLINE_S)
    for machine in machines:
        shutil.rmtree(machine.root() / "local/images")
    shutil.rmtree(machines[1].root() / "local/away")
    assert record is not None
    told = ": rank 1 on node02: /local/images: the class folder n90000003 is missing"
    assert record["reason"].endswith(told)
    left_nothing(machines)
