"""The lease: what a cell holds on one host, written before it is taken.

A lease is a journal of JSON lines. The first line (the holder) is on disk (fsync) before
anything is started; a directory or a mount is journalled before it is made; a process writes
its own identity (the line of /proc/self/stat) before it becomes the program it was started for.
So whatever kills the holder, nothing runs that the journal does not name.

The holder keeps the journal locked (flock), and the kernel drops the lock with the holder: a
journal that can be locked is stale. Cleaning up at the end of a cell and reaping after a dead
holder are the same code, ``Lease.clean``.
"""

import errno
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from burstlab import process
from burstlab.errors import BurstlabError
from burstlab.mounts import mounts_below, unmount
from burstlab.process import Identity
from burstlab.stopping import deferred

MARKER = "BURSTLAB_CELL"  # environment variable that every process of a cell carries
SCHEMA = "burstlab.lease/1"
WORKLOAD = "workload"  # the one child that is no daemon

_JOURNAL_THEN_EXEC = (
    '[ -f "$0" ] && IFS= read -r stat </proc/self/stat'
    ' && printf "%s\\n" "$stat" >>"$0" && exec "$@"'
)


def state_directory() -> Path:
    """Where this user's leases lie on this host: $BURSTLAB_STATE, else /var/tmp/burstlab-UID.

    Raises BurstlabError when the directory is another user's.
    """
    path = Path(os.environ.get("BURSTLAB_STATE") or f"/var/tmp/burstlab-{os.getuid()}")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid() or path.is_symlink():
        raise BurstlabError(f"{path} belongs to another user: set BURSTLAB_STATE to one of yours")
    return path


class Lease:
    """Everything one cell has started on this host; create, use, then clean and release."""

    def __init__(self, journal: Path, lock: IO[bytes]) -> None:
        self.journal = journal
        self.id = journal.stem
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = lock
        self._made: set[Path] = set()

    @classmethod
    def create(cls, identifier: str | None = None, **about: Any) -> "Lease":
        """A new lease held by this process; ``about`` says for what (shown by `leases`).

        A ``scratch`` among it is the path of the first ``directory``: the beginning of a journal
        is on disk before anything is done, and a crash may cost the rest. What bears the mark of
        ``cell``, the lease's own elsewhere, is ended like what bears this one's.
        """
        identifier = identifier or f"{time.strftime('%m%d-%H%M%S')}-{os.urandom(3).hex()}"
        journal = state_directory() / f"{identifier}.lease"
        holder = {
            "schema": SCHEMA,
            "id": identifier,
            "host": os.uname().nodename,
            "holder": Identity.of(os.getpid()),
            "created": time.time(),
            **about,
        }
        lock = open(journal, "xb", buffering=0, opener=_private)
        fcntl.flock(lock, fcntl.LOCK_EX)
        lease = cls(journal, lock)
        lease._write(holder)
        os.fsync(lock.fileno())
        return lease

    def mark(self) -> None:
        """What this process calls from now on, without ``spawn``, is of the cell, too."""
        os.environ[MARKER] = self.id

    def directory(self, path: str | Path) -> Path:
        """Make a new private directory (0700) that goes with the lease.

        Raises FileExistsError when there is one already: it is not ours, and stays.
        """
        path = Path(path)
        if path.exists() or path.is_symlink():
            if path not in self._made:
                self._write({"not ours": str(path)})
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self._write({"directory": str(path)})
        try:
            path.mkdir(0o700)
        except OSError:
            self._write({"not ours": str(path)})
            raise
        self._made.add(path)
        return path

    def mount(self, path: str | Path) -> None:
        """Announce a mount point: whatever is mounted there is unmounted by ``clean``."""
        self._write({"mount": os.fspath(path)})

    def undo(self, action: str, **arguments: Any) -> None:
        """Announce how to undo what is about to be done, where ending and removing is not enough.

        ``action`` names ``function(lease, **arguments)`` as ``module:function``. It returns what
        it could not undo, and must bear to find nothing, or half of it. ``arguments`` are JSON.
        """
        self._write({"undo": action, "arguments": arguments})

    def undone(self, action: str) -> None:
        """What was announced for ``action`` is undone."""
        self._write({"undone": action})

    def spawn(
        self,
        argv: Sequence[str | Path],
        name: str,
        output: int | IO[bytes] | None = None,
        environment: Mapping[str, str] | None = None,
        directory: str | Path | None = None,
        stdin: int = subprocess.DEVNULL,
        errors: IO[bytes] | None = None,
        heir: bool = False,
        prefix: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own; ``output`` takes stdout and stderr.

        ``prefix``: an absolute path and words of what runs the program, such as a tracer.
        An ``heir`` holds the lease too, and goes on holding it when this process has ended.
        Raises FileNotFoundError when the program does not exist, PermissionError when it is none.
        """
        program = os.fspath(argv[0])
        found = shutil.which(program, path=(environment or os.environ).get("PATH"))
        if found is None:
            raise _no_program(program)
        with deferred():  # a child that nobody has noted yet could not be ended
            child = subprocess.Popen(
                ["/bin/sh", "-c", _JOURNAL_THEN_EXEC, self.journal, *prefix, found, *argv[1:]],
                stdin=stdin,
                stdout=output,
                stderr=output if errors is None else errors,
                env={**(os.environ if environment is None else environment), MARKER: self.id},
                cwd=directory,
                start_new_session=True,
                pass_fds=(self._lock.fileno(),) if heir else (),
            )
            self.children[name] = child
        return child

    def adopt(self) -> None:
        """Called by a forked child of the holder: a session of its own, journalled.

        The child lets go of the lock it inherited, or it would keep a dead holder's lease alive.
        """
        os.setsid()
        self._lock.close()
        self._lock = open(self.journal, "r+b", buffering=0, opener=_append)  # never anew
        with open("/proc/self/stat", "rb") as stat:
            self._lock.write(stat.read())

    def end_workload(self, grace_s: float = 5.0) -> None:
        """End what carries this cell's mark and is no daemon, by identity.

        Who hangs in a mount whose server died can't be ended yet: ``clean`` does it, after the
        storage is down.
        """
        daemons = {child.pid for name, child in self.children.items() if name != WORKLOAD}
        found = {*process.members(f"{MARKER}={self.id}", but_not=daemons)}
        process.end(found | self._guests(read(self.journal)), grace_s, patience_s=1.0)

    def clean(self, grace_s: float = 5.0) -> list[str]:
        """Undo, end the processes, unmount, remove the directories; returns what could not be."""
        held = read(self.journal)
        left = [what for undo in reversed(held.undos) for what in self._undo(*undo)]
        left += [f"process {p.pid} still runs" for p in self._end_processes(held, grace_s)]
        for child in self.children.values():
            child.poll()
        left += [problem for path in reversed(held.mounts) if (problem := unmount(path))]
        left += [problem for path in reversed(held.directories) if (problem := _remove(path))]
        return left

    def release(self) -> None:
        """Give the lease back: only after ``clean`` returned nothing."""
        self.journal.unlink(missing_ok=True)
        self._lock.close()

    def _undo(self, action: str, arguments: dict[str, Any]) -> list[str]:
        from burstlab.nodes import resolve

        try:
            left: list[str] = resolve(action)(self, **arguments)
        except Exception as error:  # whatever it is, the rest is cleaned, and it is told
            return [f"{action} failed: {error!r}"]
        return left

    def _end_processes(self, held: "Held", grace_s: float) -> list[Identity]:
        sessions = {identity.pid for identity in held.processes if _session_is_ours(identity)}
        me, left = Identity.of(os.getpid()), []
        for _ in range(3):  # who forked between the look and the signal is seen at the next
            found = set(process.members(f"{MARKER}={self.id}", sessions, held.directories))
            found |= self._guests(held)
            # who is just becoming its program has no environment to be seen, but is written down
            found.update(identity for identity in read(self.journal).processes if identity.alive())
            found.discard(me)
            if not found:
                return []
            left = process.end(found, grace_s)
        return left

    def _guests(self, held: "Held") -> set[Identity]:
        """What came here with the cell's own mark, which srun passes on.

        A cell in a container of this very host is elsewhere, too; what it runs can be seen from
        here, in a name space of its own.
        """
        if not (cell := held.about.get("cell")):
            return set()
        return {one for one in process.members(f"{MARKER}={cell}") if process.is_near(one.pid)}

    def _write(self, entry: Mapping[str, Any]) -> None:
        """All of a line or nothing: half of one, on a full disk, would spoil the next."""
        line, size = json.dumps(entry).encode() + b"\n", os.fstat(self._lock.fileno()).st_size
        if self._lock.write(line) != len(line):
            os.ftruncate(self._lock.fileno(), size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.journal))


class Held:
    """What a journal says; a line cut off by a crash is passed over, for it was not acted on."""

    def __init__(self, journal: Path) -> None:
        self.id = journal.stem
        self.about: dict[str, Any] = {}
        self.processes: list[Identity] = []
        self.mounts: list[str] = []
        self.undos: list[tuple[str, dict[str, Any]]] = []
        self.directories: list[str] = []

    @property
    def boot(self) -> str:
        """Boot in which the journal's pids were read; empty when the first line is lost."""
        holder = self.about.get("holder")
        return str(holder[2]) if holder else ""


def read(journal: Path) -> Held:
    """The lease in a journal. Raises FileNotFoundError when it is gone."""
    held = Held(journal)
    for line in journal.read_text(errors="replace").splitlines():
        if line[:1].isdigit():
            with suppress(ValueError, IndexError):  # cut off; the mark of the cell finds it, too
                held.processes.append(Identity.from_stat(line, held.boot or None))
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "holder" in entry:
            held.about = entry
            held.directories += [entry["scratch"]] if "scratch" in entry else []
        elif "directory" in entry:
            held.directories.append(entry["directory"])
        elif "not ours" in entry:
            held.directories = [one for one in held.directories if one != entry["not ours"]]
        elif "mount" in entry:
            held.mounts.append(entry["mount"])
        elif "undo" in entry:
            held.undos.append((entry["undo"], entry["arguments"]))
        elif "undone" in entry:
            held.undos = [undo for undo in held.undos if undo[0] != entry["undone"]]
    return held


def leases() -> list[Path]:
    """Journals of this user on this host, oldest first."""
    return sorted(state_directory().glob("*.lease"))


def is_live(journal: Path) -> bool:
    """Whether the holder of a lease still holds it."""
    try:
        with journal.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def stale() -> Iterator[Lease]:
    """Leases whose holder is dead, each locked for the caller; other hosts' are left alone."""
    for journal in leases():
        try:
            lock = open(journal, "r+b", buffering=0)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        lock.seek(0, os.SEEK_END)
        if journal.exists() and _is_of_this_host(read(journal)):
            yield Lease(journal, lock)
        lock.close()


def reap(grace_s: float = 5.0) -> list[str]:
    """Clean and release every stale lease of this user on this host.

    Returns one line for each thing that could not be cleaned; such a lease stays.
    """
    problems = []
    for lease in stale():
        nameless = not read(lease.journal).about
        left = lease.clean(grace_s)
        problems += [f"{lease.id}: {problem}" for problem in left]
        if not left:
            lease.release()
        if nameless:
            problems.append(
                f"{lease.id}: the lease has lost its beginning: look for directories whose "
                f"names begin with burstlab-{lease.id} where the cell had its node-local scratch "
                "and its --pfs"
            )
    return problems


def _is_of_this_host(held: Held) -> bool:
    return str(held.about.get("host", os.uname().nodename)) == os.uname().nodename


def _no_program(name: str) -> OSError:
    if os.path.isdir(name):
        return PermissionError(f"{name}: is a directory, not a program")
    if os.path.exists(name) and "/" in name:
        return PermissionError(f"{name}: is not executable: chmod +x {shlex.quote(name)}")
    return FileNotFoundError(f"{name}: no such program{'' if '/' in name else ' on PATH'}")


def _session_is_ours(leader: Identity) -> bool:
    """A session outlives its leader, and no pid is reused while a session has it."""
    if leader.boot != process.this_boot():
        return False
    try:
        return Identity.of(leader.pid) == leader
    except ProcessLookupError:
        return True


def _remove(path: str) -> str:
    if inner := mounts_below(path):
        return f"{path} is not removed: {inner[0]} is still mounted below it"
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{path} can't be removed: {error.strerror}: {error.filename}"
    return ""


def _append(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND, 0o600)
