"""TeraSort on the Slurm nodes of a lab: a NodeManager on each, reached by the cell's launcher.

The two cells run side by side, each on two nodes.
"""

import csv
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from burstlab.record import TRACES
from tests.lab.cells import LabCell, Machine, await_, command_line, pids_on
from tests.lab.cluster import NODES, REPOSITORY, Cluster
from tests.lab.conftest import cluster as cluster

from .running import DEADLINE_S, SMALL

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "ssh", "trace", "terasort", "hadoop"),
    pytest.mark.slow,
    pytest.mark.timeout(900),  # of the fixture: JVMs on a loaded machine
]
MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
DAEMONS = ("ResourceManager", "JobHistoryServer", "NodeManager", "MRAppMaster")
TASK = "org.apache.hadoop.mapred.YarnChild"
REFUSALS = ("is not authorized", "Available:[TOKEN]")  # by whence it comes, without the job's token
STRANGER = REPOSITORY / "tests/workflows/terasort/stranger.py"
SIZES_MB = {"good": "1", "killed": "500"}


@pytest.fixture(scope="module")
def machines(cluster: Cluster) -> dict[str, Machine]:
    """As they were before any cell."""
    return {node: Machine(cluster, node) for node in NODES}


class Open(NamedTuple):
    """A socket that others than its own node can reach."""

    program: str  # Java's main class
    address: str  # on which it listens
    to_http: str  # its answers to a node that is not of the cell
    to_rpc: str


@pytest.fixture(scope="module")
def sockets() -> list[Open]:
    """Those of the nodes on which a job runs; see ``cells``."""
    return []


@pytest.fixture(scope="module")
def cells(
    cluster: Cluster, machines: dict[str, Machine], sockets: list[Open]
) -> dict[str, LabCell]:
    """One by ssh; one by srun, struck on the way; both at their ends."""
    found = {}
    for name, launch, nodes in (("good", "ssh", NODES[:2]), ("killed", "srun", NODES[2:])):
        cell = found[name] = LabCell(cluster, f"terasort-{name}", nodes)
        labels = {"workload": "terasort", **SMALL, "size_mb": SIZES_MB[name]}
        flags = [word for item in labels.items() for word in ("--label", "=".join(item))]
        flags += ["--trace-io"] if name == "good" else []
        flags += ["--needs", "shared", "--check", f"{REPOSITORY}/workflows/terasort/check"]
        path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        run = f"exec {REPOSITORY}/workflows/terasort/run"
        cell.submit("pfs", run, *flags, launch=launch, variables=path)
    await_a_task(cluster, found["killed"], "node04")
    for node in found["killed"].nodes:
        sockets += listening(cluster, node)
    [manager] = running(cluster, "node04", MANAGER)
    os.kill(manager, signal.SIGKILL)  # together with what it would tell
    for cell in found.values():
        cell.finish(DEADLINE_S)
    return found


def await_a_task(cluster: Cluster, cell: LabCell, node: str) -> None:
    """Wait until a task of its own runs there."""

    def working() -> bool:
        return cell.ended() or bool(running(cluster, node, TASK))

    await_(working, f"a map runs on {node}", DEADLINE_S)
    assert not cell.ended(), cell.said()


def listening(cluster: Cluster, node: str) -> list[Open]:
    """Java's sockets of a node but those of its loopback, asked from another cell's node."""
    enter = ["nsenter", "--target", str(cluster.machines()[node]), "--net"]
    done = subprocess.run(
        [*enter, "ss", "-Hltnp"], capture_output=True, text=True, check=True, timeout=60
    )
    found = re.findall(r"LISTEN +\d+ +\d+ +(\S+):(\d+) .*\(\(\"java\",pid=(\d+)", done.stdout)
    sockets = []
    for address, port, pid in found:
        if address.startswith("127."):
            continue
        line = " ".join(command_line(int(pid)))
        [program, *_] = re.findall(r"org\.apache\.hadoop\S+\.([A-Z]\w+)", line)
        answers = cluster.run(NODES[0], sys.executable, str(STRANGER), node, port)
        sockets.append(Open(program, address, *answers.splitlines()))
    return sockets


def running(cluster: Cluster, node: str, word: str) -> list[int]:
    """Java's processes on a node that run the class ``word``."""
    lines = {pid: command_line(pid) for pid in pids_on(cluster, node)}
    return [pid for pid, line in lines.items() if word in line and line[0].endswith("java")]


def test_a_killed_node_manager_of_another_host(
    cells: dict[str, LabCell], machines: dict[str, Machine]
) -> None:
    record = cells["killed"].record()
    assert record is not None and record["status"] == "failed"
    assert "node04: its NodeManager died (killed by SIGKILL)" in record["reason"]
    assert [what for node in cells["killed"].nodes for what in machines[node].left()] == []


def test_a_node_manager_runs_on_each_node(
    cells: dict[str, LabCell], machines: dict[str, Machine]
) -> None:
    cell = cells["good"]
    record = cell.record()
    assert record is not None and record["status"] == "ok", cell.said()
    names = [metric["name"] for metric in record["metrics"]]
    assert names == ["teragen_time", "terasort_time", "teravalidate_time"]
    log = (cell.seen / "hadoop/resourcemanager.log").read_text()
    for node in cell.nodes:
        assert f"{node}(cmPort" in log, f"no NodeManager of {node} has registered"
    assert record["trace"]["hosts"] == [*cell.nodes], "what a NodeManager starts is traced"
    with (cell.seen / TRACES[0]).open(newline="") as rows:
        ours = [row for row in csv.DictReader(rows) if row["place"] == "work"]
    [reduced] = [row for row in ours if row["written_bytes"] == "1000000"]
    assert reduced["path"].startswith("sorted/") and reduced["program"] == "java"


def test_hadoop_listens_to_others_where_it_can_not_be_told_otherwise(
    cells: dict[str, LabCell], sockets: list[Open]
) -> None:
    assert len(cells["killed"].nodes) == 2
    # The shuffle of each node, and of the job's master: tasks, clients, web page. Fewer would be
    # good news for docs/how-to/terasort.md.
    programs = Counter(one.program for one in sockets if one.address in ("0.0.0.0", "*", "[::]"))
    assert programs == {"NodeManager": 2, "MRAppMaster": 3}


def test_no_socket_gives_anything_to_a_node_that_is_not_of_the_cell(
    cells: dict[str, LabCell], sockets: list[Open]
) -> None:
    assert {one.program for one in sockets} == set(DAEMONS)
    rest = [one for one in sockets if not any(words in one.to_rpc for words in REFUSALS)]
    shuffles = [one for one in rest if one.program == "NodeManager"]
    assert len(shuffles) == len(cells["killed"].nodes)
    assert all(" 401 Unauthorized" in one.to_http for one in shuffles), shuffles
    [page] = [one for one in rest if one not in shuffles]
    assert page.program == "MRAppMaster" and " 302 Found" in page.to_http
