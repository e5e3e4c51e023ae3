"""What tests leave behind: processes, mounts, name spaces, loop devices, scratch, leases.

Looked for after every test and again after every module (whose own fixtures may hold things while
its tests run). Others may be at work on the same machine, so only what can be told to be ours
counts: what lies in this run's directories, or carries them in its environment or arguments. On a
machine that is ours alone (CI) every new mount and every process in a new name space is told too,
but not ended.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from burstlab import process
from burstlab.mounts import mounts, unmount
from burstlab.process import Identity

CI = os.environ.get("CI") == "true"
ALONE = CI and "PYTEST_XDIST_WORKER" not in os.environ
LEFT_BEHIND = 10  # exit status of a run after which something is left; of pytest's own none is
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
    mine, suspects = {}, set()
    for proc in _new_processes(known):
        with suppress(OSError):  # it ended meanwhile, or is another user's
            if is_ours(proc, below):
                mine[_describe(proc)] = Identity.of(int(proc.name))
            elif ALONE and is_suspect(proc):
                suspects.add(_describe(proc))
    others = {f"network name space {path}" for path in _entries(NAMESPACES)} | suspects
    for block in Path("/sys/block").glob("loop*/loop/backing_file"):
        if (path := block.read_text().strip()).startswith(below):
            others.add(f"loop device {block.parts[3]} on {path}")
    left_over = [*_scratch(place.run, 0), *_scratch(place.run / "state", 0)]
    if place.test is not None:
        left_over += _scratch(place.test, DEPTH)
    others |= {f"left over: {path}" for path in left_over}
    points = {m.path for m in mounts()}
    own = {path for path in points if path.startswith(below)}
    if ALONE:
        others |= {f"mount {path}" for path in points - own}
    return Inventory(mine, {f"mount {path}": path for path in own}, frozenset(others))


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
    for path in sorted((now.mounts[name] for name in new & now.mounts.keys()), reverse=True):
        unmount(path)
    return sorted(new)


def pids() -> frozenset[int]:
    """Every process there is."""
    return frozenset(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def is_ours(proc: Path, below: str) -> bool:
    """A child of this run, or a process that knows its directories or works there."""
    if _descends_from_here(int(proc.name)):
        return True
    if below.encode() in (proc / "environ").read_bytes() + (proc / "cmdline").read_bytes():
        return True
    return any(f"{(proc / link).readlink()}/".startswith(below) for link in ("cwd", "exe"))


def is_suspect(proc: Path) -> bool:
    """A process of some cell, or in a network of its own, that does not tell whose it is."""
    environment = (proc / "environ").read_bytes()
    if b"BURSTLAB_CELL=" in environment and b"BURSTLAB_STATE=" not in environment:
        return True
    return (proc / "ns/net").readlink() != Path("/proc/self/ns/net").readlink()


def _new_processes(known: frozenset[int]) -> Iterator[Path]:
    """Those that run and are not known, without this one and what Python keeps for itself."""
    for pid in pids() - known - {os.getpid()}:
        proc = Path("/proc", str(pid))
        with suppress(OSError):
            arguments = (proc / "cmdline").read_bytes()
            servant = any(word in arguments for word in OWN_SERVANTS)
            if Identity.of(pid).alive() and not servant:
                yield proc


def _describe(proc: Path) -> str:
    arguments = (proc / "cmdline").read_bytes().replace(b"\0", b" ")
    return f"process {proc.name}: {arguments.decode(errors='replace').strip()}"


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
