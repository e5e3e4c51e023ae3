"""The fault table: every fault on every storage, on a lab's nodes, in real Slurm jobs.

    pytest tests/faults/test_table.py --write-table     # also writes it into docs/reliability.md

A row strikes one cell of each storage at the same time. Each says what its user sees; the nodes
are searched for what is left afterwards.
"""

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.faults import driver, page
from tests.faults.bench import STORAGES, Bench, StruckCell
from tests.faults.strikes import FAULTS, FINE, NONE, Fault

FAILED = "FAILED"
_told: dict[tuple[str, str], str] = {}

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "gfarm", "fuse", "beeond"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> Iterator[None]:
    """Written at the end, when it is asked for."""
    yield
    if request.config.getoption("--write-table"):
        page.write(_told)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as bench:
        yield bench


@pytest.fixture
def own() -> Iterator[Bench]:
    """One that loses nodes."""
    with Bench() as bench:
        yield bench


def test_driver(bench: Bench) -> None:
    _told.update({(driver.NAME, storage): FAILED for storage in STORAGES})
    try:
        _told.update({(driver.NAME, s): told for s, told in driver.strike(bench).items()})
    except BaseException:
        for storage in STORAGES:
            bench.rescue(bench.cell("", storage))
        raise


def words(fault: Fault) -> str:
    return fault.name.replace(" ", "_")


@pytest.mark.parametrize("fault", [f for f in FAULTS if not f.takes_nodes], ids=words)
def test_fault(bench: Bench, fault: Fault) -> None:
    meet(bench, fault)


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.takes_nodes], ids=words)
def test_fault_that_takes_nodes(own: Bench, fault: Fault) -> None:
    meet(own, fault)


def meet(bench: Bench, fault: Fault) -> None:
    """One cell of each storage, each on its own nodes."""
    name = re.sub(r"\W", "-", fault.name)
    cells = {storage: bench.cell(f"{name}-{storage}", storage) for storage in fault.storages}
    wrong: dict[str, BaseException] = {}

    def all_of_them(step: Callable[[StruckCell], Any]) -> None:
        """One that went wrong goes no further; the others do."""
        going = {storage: cell for storage, cell in cells.items() if storage not in wrong}
        with ThreadPoolExecutor(len(cells)) as pool:
            done = {storage: pool.submit(step, cell) for storage, cell in going.items()}
        wrong.update((s, error) for s, future in done.items() if (error := future.exception()))

    all_of_them(lambda cell: begin(fault, cell))
    all_of_them(fault.strike)
    if fault.at_once:
        fault.at_once(bench, [cell for storage, cell in cells.items() if storage not in wrong])
    all_of_them(lambda cell: conclude(fault, cell))
    bench.double.faults()
    for storage, error in wrong.items():
        _told[fault.name, storage] = FAILED
        error.add_note(f"of {storage}")
        try:
            bench.rescue(cells[storage])
        except (AssertionError, OSError, subprocess.SubprocessError) as after:
            error.add_note(f"and its nodes could not be emptied: {after}")
    if len(wrong) == 1:
        raise next(iter(wrong.values()))
    if wrong:
        raise BaseExceptionGroup(fault.name, list(wrong.values()))


def begin(fault: Fault, cell: StruckCell) -> None:
    if fault.before:
        fault.before(cell)
    cell.begin(fault.script, *fault.flags)
    if fault.runs:
        cell.running()


def conclude(fault: Fault, cell: StruckCell) -> None:
    """Its end, what it left, what the user sees."""
    record = cell.finish()
    if fault.after:
        fault.after(cell)
    reaped = [cell.nodes[at] for at in fault.reap_on]
    killed = fault.expected(cell.storage) == NONE
    cell.await_nothing_left([n for n in cell.nodes if n not in reaped], pfs=not killed)
    cell.bench.reap(reaped)
    cell.await_nothing_left(cell.nodes)
    _told[fault.name, cell.storage] = judge(fault, cell, record)


def judge(fault: Fault, cell: StruckCell, record: Mapping[str, Any] | None) -> str:
    """What the user sees; asserts that it is what it must be."""
    expected = fault.expected(cell.storage)
    if expected == NONE:
        assert record is None, "a killed cell has no record"
        return "no record; " + ("reaped" if fault.reap_on else "the next cell reaps")
    assert record is not None, cell.said()
    if expected == FINE:
        assert record["status"] == "ok", record["reason"]
        return "ok"
    assert record["status"] == "failed", cell.said()
    assert re.search(expected, record["reason"]), f"{record['reason']}\n{cell.said()}"
    told = f"failed ({record['exit_status']}): {record['reason']}"
    if record["reason"].startswith("the workload ended"):
        told += f"; its log: {(cell.seen / 'workload.log').read_text().splitlines()[0]}"
    return told
