"""Montage on two nodes of a lab: whoever ends its job, no command goes on anywhere."""

import os
import signal

import pytest

from tests.lab.cells import SHARED, LabCell, Machine, await_, command_line, pids_on
from tests.lab.cluster import NODES, REPOSITORY, Cluster

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "montage", "gfarm", "ssh"),
    pytest.mark.slow,
]
PATIENT = "#!/bin/sh\nexec sleep 600\n"


@pytest.fixture(scope="module")
def tiles(cluster: Cluster) -> str:
    """Few small tiles on the parallel file system, and a mProjectPP beside them that never ends."""
    from burstlab.dataset.model import SyntheticTiles
    from burstlab.dataset.synthetic import make_tiles

    place = cluster.directory / "pfs"
    size = {"tile_width": 64, "tile_height": 64, "stars_per_tile": 5}
    make_tiles(place / "tiles", SyntheticTiles(columns=3, rows=2, **size))
    (place / "bin").mkdir()
    program = place / "bin/mProjectPP"
    program.write_text(PATIENT)
    program.chmod(0o755)
    return f"{SHARED}/tiles"


def projecting(cluster: Cluster, node: str) -> int:
    commands = [command_line(pid) for pid in pids_on(cluster, node)]
    return commands.count(["sleep", "600"])


def projecting_on(
    cluster: Cluster, nodes: tuple[str, ...], storage: str, remote: str, tiles: str
) -> LabCell:
    """A cell in the midst of its work: two commands on each of its nodes."""
    cell = LabCell(cluster, f"{storage}-{remote}-{os.urandom(2).hex()}", nodes)
    variables = {"PATH": f"{SHARED}/bin:{os.environ['PATH']}"}
    run = f"exec env BURSTLAB_DATA={tiles} {REPOSITORY}/workflows/montage/run --remote {remote}"
    cell.submit(storage, run, "--cores-per-node", "2", variables=variables)
    await_(lambda: cell.ended() or {projecting(cluster, n) for n in nodes} == {2}, "two on each")
    assert not cell.ended(), cell.said() + (cell.seen / "workload.log").read_text()
    return cell


@pytest.mark.parametrize("remote", ["ssh", "srun"])
@pytest.mark.parametrize("storage", ["pfs", "gfarm"])
def test_a_cancelled_job_leaves_no_command_on_any_node(
    cluster: Cluster, tiles: str, storage: str, remote: str
) -> None:
    both = NODES[:2]
    machines = [Machine(cluster, node) for node in both]
    cell = projecting_on(cluster, both, storage, remote, tiles)
    cluster.run("head", "scancel", cell.job)
    record = cell.finish()
    assert record is not None and record["status"] == "failed"
    assert record["reason"].startswith("stopped by")
    await_(lambda: not any(machine.left() for machine in machines), "nothing is left", limit_s=15)


@pytest.mark.parametrize("remote", ["ssh", "srun"])
def test_what_a_killed_worker_leaves_is_ended_with_the_cell(
    cluster: Cluster, tiles: str, remote: str
) -> None:
    both = NODES[:2]
    machines = [Machine(cluster, node) for node in both]
    cell = projecting_on(cluster, both, "pfs", remote, tiles)
    [worker] = [p for p in pids_on(cluster, "node02") if is_worker(command_line(p))]
    os.kill(worker, signal.SIGKILL)
    record = cell.finish()
    told = "the workload ended with exit status 1: node02: the connection is lost"
    assert record is not None and record["reason"].startswith(told)
    await_(lambda: not any(machine.left() for machine in machines), "nothing is left", limit_s=15)


def is_worker(command: list[str]) -> bool:
    return "ruby" in command[0] and command[-1].endswith("worker.rb") if command else False
