"""The fault table: every fault on every storage, on a lab's nodes, in real Slurm jobs.

    pytest tests/faults/test_table.py --write-table     # also writes it into docs/reliability.md

Each case says what the user sees; all nodes are searched for what is left afterwards.
"""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.cells import LabCell, await_nothing_left, reap
from tests.lab.cluster import NODES, REPOSITORY, Cluster

STORAGES = ("pfs", "nodelocal", "gfarm")
PAGE = REPOSITORY / "docs/reliability.md"
WORK = (
    'touch "$BURSTLAB_CELL_DIR/running"; cd "$BURSTLAB_MOUNT"; i=0; '
    "while :; do i=$((i+1)); head -c 10000 /dev/zero >f$((i % 50)) || exit 1; sleep 0.02; done"
)
_told: dict[tuple[str, str], str] = {}

pytestmark = pytest.mark.requires("root", "netns", "lab", "gfarm", "fuse")


@dataclass(frozen=True)
class Fault:
    """What is done to a running cell, and how its record must name it; ``reason`` None: no
    record, an empty one: the cell ends well."""

    name: str
    strike: Callable[[LabCell], None]
    reason: str | None
    storages: tuple[str, ...] = STORAGES
    script: str = WORK
    flags: tuple[str, ...] = ()
    reap_on: tuple[str, ...] = ()  # hosts where the user, or the next cell, reaps


def to_holder(number: int) -> Callable[[LabCell], None]:
    return lambda cell: os.kill(cell.holder(), number)


def to_process(
    machine: str, *words: str, number: int = signal.SIGKILL
) -> Callable[[LabCell], None]:
    return lambda cell: os.kill(cell.pid(machine, *words), number)


def cancel(cell: LabCell) -> None:
    cell.cluster.run("head", "scancel", cell.job)


def time_out(cell: LabCell) -> None:
    words = ("scontrol", "update", f"JobId={cell.job}", "EndTime=now+1")
    cell.cluster.run("head", *words, user="root")


def lose_node(cell: LabCell) -> None:
    cell.cluster.must("kill", NODES[1])


def stall(cell: LabCell) -> None:
    """The parallel file system answers nobody for a while (SIGSTOP to the emulators)."""
    pids = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and serves(entry, str(cell.cluster.directory))
    ]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    cell.cluster.lab("status")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    (cell.cluster.directory / "pfs" / cell.name / "stop").touch()


def serves(entry: Path, directory: str) -> bool:
    try:
        words = (entry / "cmdline").read_text(errors="replace")
    except OSError:
        return False
    return "burstlab.pfs" in words and directory in words


def nothing(cell: LabCell) -> None:
    """The workload meets the fault by itself."""


UNTIL_TOLD = WORK.replace("while :;", 'while [ ! -e "$BURSTLAB_CELL_DIR/stop" ];')
PYTHON = (Path(sys.executable).name, "-m")
LOST = Fault("node is lost", lose_node, f"{NODES[1]}: no longer answers", reap_on=NODES[1:2])

FAULTS = [
    Fault("cell gets SIGTERM", to_holder(signal.SIGTERM), "^stopped by SIGTERM"),
    Fault("cell gets SIGINT", to_holder(signal.SIGINT), "^stopped by SIGINT"),
    Fault("cell gets SIGKILL", to_holder(signal.SIGKILL), None, reap_on=NODES[:1]),
    Fault("cell's own time limit", nothing, "^time limit of 2 s", flags=("--time-limit", "2")),
    Fault("scheduler's time limit", time_out, "stopped by SIGTERM"),
    Fault("scancel", cancel, "stopped by SIGTERM"),
    Fault("agent of a node dies", to_process(NODES[1], *PYTHON, "burstlab.agent"),
          f"{NODES[1]}: its agent ended", reap_on=NODES[1:2]),
    Fault("gfmd dies", to_process(NODES[0], "gfmd"), "gfmd died", ("gfarm",)),
    Fault("gfsd of a node dies", to_process(NODES[1], "gfsd"), "gfsd died", ("gfarm",)),
    Fault("gfarm2fs of a node dies", to_process(NODES[1], "gfarm2fs"), "gfarm2fs died", ("gfarm",)),
    Fault("PFS does not answer for a while", stall, "", script=UNTIL_TOLD),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> Iterator[None]:
    """Written at the end, when it is asked for."""
    yield
    if request.config.getoption("--write-table"):
        write_table()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.must("up", "--nodes", "4")
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A lab that loses a node."""
    cluster = Cluster()
    try:
        cluster.must("up", "--nodes", "4")
        yield cluster
    finally:
        cluster.remove()


CASES = [(fault, storage) for fault in FAULTS for storage in fault.storages]


@pytest.mark.parametrize(
    ("fault", "storage"), CASES, ids=[f"{f.name}-{s}".replace(" ", "_") for f, s in CASES]
)
def test_fault(cluster: Cluster, fault: Fault, storage: str) -> None:
    meet(cluster, fault, storage)


@pytest.mark.parametrize("storage", STORAGES)
def test_node_is_lost(own: Cluster, storage: str) -> None:
    meet(own, LOST, storage)


def meet(cluster: Cluster, fault: Fault, storage: str) -> None:
    """Run a cell, do it the harm, and look for what is left."""
    _told[fault.name, storage] = "FAILED"
    cell = LabCell(cluster, re.sub(r"\W", "-", f"{fault.name}-{storage}"))
    cell.submit(storage, fault.script, *fault.flags)
    cell.running()
    fault.strike(cell)
    record = cell.finish()
    if fault.strike is lose_node:
        cluster.must("start", NODES[1])
    survivors = tuple(node for node in NODES if node not in fault.reap_on)
    await_nothing_left_if(fault, cluster, survivors)
    for machine in fault.reap_on:
        reap(cluster, machine)
    await_nothing_left(cluster)
    _told[fault.name, storage] = judge(fault, cell, record)


def await_nothing_left_if(fault: Fault, cluster: Cluster, survivors: tuple[str, ...]) -> None:
    """A killed cell's directory on the parallel file system waits for the reaper, too."""
    if fault.reason is not None:
        await_nothing_left(cluster, survivors)


def judge(fault: Fault, cell: LabCell, record: dict[str, object] | None) -> str:
    """What the user sees; asserts that it is what it must be."""
    if fault.reason is None:
        assert record is None, "a killed cell has no record"
        return "no record; reaped"
    assert record is not None, cell.said()
    if not fault.reason:
        assert record["status"] == "ok", record["reason"]
        return "waits; ok"
    assert record["status"] == "failed", cell.said()
    assert re.search(fault.reason, str(record["reason"])), f"{record['reason']}\n{cell.said()}"
    return f"failed ({record['exit_status']}): {record['reason']}"


def write_table() -> None:
    """Put what was seen between the marks of the page."""
    begin, end = "<!-- fault table: begin -->\n", "<!-- fault table: end -->"
    rows = ["| Fault | " + " | ".join(STORAGES) + " |", "|---" * (len(STORAGES) + 1) + "|"]
    for fault in [*FAULTS, LOST]:
        cells = [_told.get((fault.name, s), "-" if s not in fault.storages else "not run")
                 for s in STORAGES]  # fmt: skip
        rows.append(
            f"| {fault.name} | " + " | ".join(text.replace("|", "/") for text in cells) + " |"
        )
    before, rest = PAGE.read_text().split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(before + begin + "\n".join(rows) + "\n" + end + after)
