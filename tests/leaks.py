"""What tests leave behind: processes, mounts, name spaces, loop devices, scratch, leases.

Looked for after every test and again after every module (whose own fixtures may hold things while
its tests run). Others may be at work on the same machine, so only what can be told to be ours
counts: what lies in this run's directories, or carries them in its environment or arguments. On a
machine that is ours alone (CI) every new mount and every process in a new name space counts.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from burstlab import process
from burstlab.mounts import mounts, unmount
from burstlab.process import Identity

ALONE = os.environ.get("CI") == "true"
PATIENCE_S = 5.0  # a process that was told to end may take a moment
DEPTH = 3  # scratch directories are looked for this deep below a test's directory
NAMESPACES = Path("/run/netns")
OWN_SERVANTS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")


@dataclass(frozen=True)
class Place:
    """Where to look: the run's private directory, and the directory of one test if it has one."""

    run: Path
    test: Path | None = None


@dataclass(frozen=True)
class Inventory:
    """What there is at one moment, by the words that describe it."""

    processes: dict[str, Identity]
    mounts: dict[str, str]
    others: frozenset[str]

    def names(self) -> set[str]:
        return {*self.processes, *self.mounts, *self.others}


def look(place: Place, known: frozenset[int]) -> Inventory:
    """Everything of ours there is now; ``known`` processes are left out."""
    below = f"{place.run}/"
    others = {f"network name space {path}" for path in _entries(NAMESPACES)}
    for block in Path("/sys/block").glob("loop*/loop/backing_file"):
        if (path := block.read_text().strip()).startswith(below):
            others.add(f"loop device {block.parts[3]} on {path}")
    left_over = [*_scratch(place.run, 0), *_scratch(place.run / "state", 0)]
    if place.test is not None:
        left_over += _scratch(place.test, DEPTH)
    return Inventory(
        processes={f"process {i.pid}: {what}": i for i, what in _processes(below, known)},
        mounts={f"mount {m.path}": m.path for m in mounts() if ALONE or m.path.startswith(below)},
        others=frozenset(others | {f"left over: {path}" for path in left_over}),
    )


def leaked(before: Inventory, place: Place, known: frozenset[int]) -> list[str]:
    """What is there now and was not before, after waiting for what is about to go.

    Leaked processes are ended and leaked mounts unmounted, so that one test's leak is not the
    next one's.
    """
    deadline = time.monotonic() + PATIENCE_S
    while new := (now := look(place, known)).names() - before.names():
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    process.end([identity for name, identity in now.processes.items() if name in new], grace_s=0)
    for name, path in reversed(now.mounts.items()):
        if name in new:
            unmount(path)
    return sorted(new)


def pids() -> frozenset[int]:
    """Every process there is."""
    return frozenset(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _processes(below: str, known: frozenset[int]) -> Iterator[tuple[Identity, str]]:
    for pid in pids() - known - {os.getpid()}:
        try:
            identity = Identity.of(pid)
            if identity.alive() and is_ours(Path("/proc", str(pid)), below):
                arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
                if not any(servant in arguments for servant in OWN_SERVANTS):
                    yield identity, arguments.replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended meanwhile, or is another user's


def is_ours(proc: Path, below: str) -> bool:
    """A child of this run, or one that knows its directories, or hides where it belongs."""
    if _descends_from_here(int(proc.name)):
        return True
    environment = (proc / "environ").read_bytes()
    if below.encode() in environment + (proc / "cmdline").read_bytes():
        return True
    if ALONE and b"BURSTLAB_CELL=" in environment and b"BURSTLAB_STATE=" not in environment:
        return True
    if any(f"{(proc / link).readlink()}/".startswith(below) for link in ("cwd", "exe")):
        return True
    return ALONE and (proc / "ns/net").readlink() != Path("/proc/self/ns/net").readlink()


def _descends_from_here(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat[stat.rindex(")") + 2 :].split()[1])
    return False


def _scratch(directory: Path, depth: int) -> Iterator[Path]:
    """Scratch directories and leases of cells."""
    for entry in _entries(directory):
        if entry.is_symlink():
            continue
        if entry.name.endswith(".lease"):
            yield entry
        elif entry.is_dir():
            if entry.name.startswith("burstlab-"):
                yield entry
            elif depth:
                yield from _scratch(entry, depth - 1)


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:  # it is not there, or is a mount whose server died: the mount is told
        return []
