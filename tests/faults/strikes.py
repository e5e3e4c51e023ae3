"""The faults: what is done to a running cell, and what its user is to be told."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.bench import PAIRS, STORAGES, Bench, StruckCell
from tests.lab.cells import SHARED, on_head

FINE = "ok"  # the cell ends well
NONE = "no record"  # the cell was killed: whoever looks finds no record of it
MINUTE_S = 60.0

MARK = 'echo "$BURSTLAB_CELL" >"$BURSTLAB_CELL_DIR/running"; cd "$BURSTLAB_MOUNT" || exit; i=0; '
WRITE = "i=$((i+1)); head -c 10000 /dev/zero >f$((i % 50)) || exit 1; sleep 0.05; "
WORK = f"{MARK} while :; do {WRITE} done"
UNTIL_TOLD = f'{MARK} while [ ! -e "$BURSTLAB_CELL_DIR/stop" ]; do {WRITE} done'
FILL = (
    f'{MARK} head -c 30000000 /dev/zero >"$BURSTLAB_LOCAL/fill"; '
    "head -c 30000000 /dev/zero >big || exit 1"
)

Strike = Callable[[StruckCell], None]


@dataclass(frozen=True)
class Fault:
    """One row of the table.

    ``told``: FINE, NONE, or what the record's reason must match; by storage where they differ.
    """

    name: str
    strike: Strike
    told: str | Mapping[str, str]
    storages: tuple[str, ...] = STORAGES
    script: str = WORK
    flags: tuple[str, ...] = ()
    before: Strike | None = None  # the cell is submitted
    at_once: Callable[[Bench, Sequence[StruckCell]], None] | None = None  # after ``strike``
    after: Strike | None = None  # it has ended, and nobody has looked yet at what it left
    runs: bool = True  # it is met at work
    takes_nodes: bool = False
    reap_on: tuple[int, ...] = ()  # of its two nodes, those where the user reaps

    def expected(self, storage: str) -> str:
        return self.told if isinstance(self.told, str) else self.told[storage]


def nothing(cell: StruckCell) -> None:
    """The cell meets the fault by itself."""


def to_holder(number: int) -> Strike:
    return lambda cell: os.kill(cell.holder(), number)


def to_process(at: int, *words: str) -> Strike:
    """Kill the oldest process whose command line begins so, on one of the cell's nodes."""
    return lambda cell: os.kill(cell.pid(cell.nodes[at], *words), signal.SIGKILL)


def cancel(cell: StruckCell) -> None:
    on_head(cell.cluster, "scancel", cell.job)


def time_out(cell: StruckCell) -> None:
    on_head(cell.cluster, "scontrol", "update", f"JobId={cell.job}", "EndTime=now+1")


def lose_node(cell: StruckCell) -> None:
    cell.bench.lose(cell.nodes[1])


def switch_on(cell: StruckCell) -> None:
    cell.bench.boot(cell.nodes[1])


def reboot(cell: StruckCell) -> None:
    """Slurm wants its slurmd back; what is left is looked for before. Nobody tells that node's
    agent of the end of its job: it asks when it has heard nothing for 30 s."""
    cell.await_nothing_left(cell.nodes, limit_s=60)
    cell.bench.reboot(cell.nodes[1])


def kill_all(cell: StruckCell) -> None:
    """Cell and agents at once, so that nobody is there to clean: all stand still before the first
    dies, and the cell is the last, for its job ends with it and Slurm lets the others go on then.
    """
    agents = [cell.pid(name, *PYTHON, "burstlab.agent") for name in cell.nodes]
    found = [cell.holder(), *agents]
    for pid in found:
        os.kill(pid, signal.SIGSTOP)
    for pid in reversed(found):
        os.kill(pid, signal.SIGKILL)


def cut_leases(cell: StruckCell) -> None:
    """The last line of each journal loses its end, as in a crash."""
    found = []
    for name in cell.nodes:
        found += [*cell.bench.machines[name].root().glob("var/tmp/burstlab-*/*.lease")]
    assert len(found) == 3, f"two of the first node and one of the second: {found}"
    for journal in found:
        text = journal.read_bytes()
        journal.write_bytes(text[: text.rstrip().rindex(b"\n") + 5])


def next_cell(cell: StruckCell) -> None:
    """It reaps before it starts."""
    follower = cell.bench.cell(f"{cell.name}-next", cell.storage)
    follower.begin("true")
    record = follower.finish()
    assert record is not None and record["status"] == "ok", follower.said()


def begin_another(cell: StruckCell) -> None:
    """A second cell on the same hosts; then the first is ended."""
    other = cell.bench.cell(f"{cell.name}-other", cell.storage)
    other.begin(UNTIL_TOLD)
    other.running()
    os.kill(cell.holder(), signal.SIGTERM)
    cell.neighbour = other


def end_another(cell: StruckCell) -> None:
    """The second one must not have noticed."""
    other = cell.neighbour
    assert other is not None and not other.ended(), other and other.said()
    (other.seen / "stop").touch()
    record = other.finish()
    assert record is not None and record["status"] == "ok", other.said()


def stall_a_minute(bench: Bench, cells: Sequence[StruckCell]) -> None:
    """Nobody may give up before the parallel file system answers again."""
    bench.stall()
    end = time.monotonic() + MINUTE_S
    while time.monotonic() < end:
        assert all(cell.record() is None for cell in cells)
        time.sleep(1)
    bench.stall()
    for cell in cells:
        (cell.seen / "stop").touch()


def make_disks_small(cell: StruckCell) -> None:
    """20 MB on each node; where the double keeps its files, too."""
    for name in cell.nodes:
        cell.bench.on(name, "mount", "-t", "tmpfs", "-o", "size=20m,mode=1777", "small", "/local")
        cell.bench.machines[name].booted()
    if cell.storage == "beeond":
        cell.bench.double.limit("20m")


def make_disks_large(cell: StruckCell) -> None:
    """What is left is looked for before."""
    cell.await_nothing_left(cell.nodes)
    for name in cell.nodes:
        cell.bench.on(name, "umount", "/local")
        cell.bench.machines[name].booted()
    if cell.storage == "beeond":
        cell.bench.double.limit("50%")


def give_unreadable_file(cell: StruckCell) -> None:
    """The fourth of six files of the data set may be read by nobody but root."""
    (cell.cluster.directory / "pfs/data/tiny/3.dat").chmod(0)


def fail_start(cell: StruckCell) -> None:
    cell.bench.double.faults(f"fail storage {cell.nodes[1]}")


def fail_stop(cell: StruckCell) -> None:
    cell.bench.double.faults(f"drop {cell.nodes[1]}")


PYTHON = (Path(sys.executable).name, "-m")
NODE2 = {storage: pair[1] for storage, pair in PAIRS.items()}

FAULTS = [
    Fault("cell gets SIGTERM", to_holder(signal.SIGTERM), "^stopped by SIGTERM$"),
    Fault("cell gets SIGINT", to_holder(signal.SIGINT), "^stopped by SIGINT$"),
    Fault("cell gets SIGKILL", to_holder(signal.SIGKILL), NONE, reap_on=(0,)),
    Fault("cell's own time limit", nothing, "^time limit of 12 s", flags=("--time-limit", "12")),
    Fault("scheduler's time limit", time_out, "^stopped by the scheduler: the job's time limit$"),
    Fault("scancel", cancel, r"^stopped by the scheduler: cancelled \(scancel\)$"),
    Fault(
        "agent of a node dies",
        to_process(1, *PYTHON, "burstlab.agent"),
        {s: rf"^{node}: its agent died \(killed by SIGKILL\)$" for s, node in NODE2.items()},
        reap_on=(1,),
    ),
    Fault(
        "slurmd of a node dies",
        to_process(1, "slurmd"),
        {storage: f"^{node}: " for storage, node in NODE2.items()},
        after=reboot,
        takes_nodes=True,
    ),
    Fault(
        "node is lost",
        lose_node,
        {storage: f"^{node}: " for storage, node in NODE2.items()},
        after=switch_on,
        takes_nodes=True,
        reap_on=(1,),
    ),
    Fault("gfmd dies", to_process(0, "gfmd"), "node05: gfmd died", ("gfarm",)),
    Fault("gfsd of a node dies", to_process(1, "gfsd"), "node06: gfsd died", ("gfarm",)),
    Fault(
        "gfarm2fs of a node dies", to_process(1, "gfarm2fs"), "node06: gfarm2fs died", ("gfarm",)
    ),
    Fault(
        "beeond start fails on a node",
        nothing,
        "Unable to start beegfs-storage on host: node08",
        ("beeond",),
        before=fail_start,
        runs=False,
    ),
    Fault(
        "beeond stop fails on a node", nothing, FINE, ("beeond",), script=MARK, before=fail_stop
    ),
    Fault(
        "storage server of BeeOND dies",
        to_process(1, "beegfs-storage"),
        "^node08: beegfs-storage died",
        ("beeond",),
    ),
    Fault(
        "node-local disk is full",
        nothing,
        {
            "pfs": FINE,
            "nodelocal": "^the workload ended with exit status 1",
            "gfarm": "no space left on the disk of its spool",
            "beeond": "^the workload ended with exit status 1",
        },
        script=FILL,
        before=make_disks_small,
        after=make_disks_large,
        runs=False,
    ),
    Fault("PFS does not answer for a minute", nothing, FINE, script=UNTIL_TOLD,
          at_once=stall_a_minute),
    Fault(
        "file of the data set can't be read",
        nothing,
        r"3\.dat.*Permission denied",
        flags=("--dataset", f"{SHARED}/data/manifest.json", "--staging", "eager"),
        before=give_unreadable_file,
        runs=False,
    ),
    Fault(
        "another cell on the same hosts",
        begin_another,
        "^stopped by SIGTERM$",
        after=end_another,
    ),
    Fault("lease of a dead job", kill_all, NONE, after=next_cell),
    Fault("lease file is cut off", kill_all, NONE, after=cut_leases, reap_on=(0, 1)),
]  # fmt: skip
