"""A data set as one tar file: made once, beside its manifest, and unpacked on each node."""

import fcntl
import hashlib
import io
import os
import secrets
import tarfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import BinaryIO, Self

from burstlab.dataset.manifest import Entry, Manifest
from burstlab.errors import StagingError
from burstlab.staging.copying import PARTIAL

READERS = 64  # the source is bound by latency: tar(1), with one, took six hours in the paper
AHEAD_BYTES = 256 << 20  # in memory; a larger file passes through in blocks
BLOCK_BYTES = 1 << 20

Report = Callable[[int, int], None]  # files packed so far, bytes


def archive_of(manifest: Manifest) -> Path:
    """Where the archive of a data set lies."""
    return manifest.path.with_suffix(".tar")


def is_current(manifest: Manifest) -> bool:
    """Whether there is an archive of just these files: its header has the manifest's digest."""
    try:
        with tarfile.open(archive_of(manifest)) as archive:
            return archive.pax_headers.get("comment") == manifest.sha256
    except (OSError, tarfile.TarError):
        return False


def pack(manifest: Manifest, source: Path, report: Report) -> bool:
    """Make the archive where there is none; returns whether it was made. Who comes while another
    makes it waits for that. Raises StagingError naming the first file that is not as it should be.
    """
    if is_current(manifest):
        return False
    try:
        with _turn(manifest):
            if is_current(manifest):
                return False
            _write(manifest, source, report)
    except OSError as error:
        raise StagingError(f"{archive_of(manifest)}: {error.strerror or error}") from error
    return True


@contextmanager
def _turn(manifest: Manifest) -> Iterator[None]:
    """One packs at a time, where the file system has locks; where it has none they do it twice."""
    mode = "r+b" if os.access(manifest.path, os.W_OK) else "rb"  # NFS locks what may be written
    with manifest.path.open(mode) as held:
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
            for left in manifest.path.parent.glob(_partial_name(manifest, "*")):
                left.unlink()  # of one that was killed
        yield


def _partial_name(manifest: Manifest, own: str) -> str:
    return f".{archive_of(manifest).name}.{own}{PARTIAL}"


def _write(manifest: Manifest, source: Path, report: Report) -> None:
    """Under a name that no other has, until all is on disk."""
    partial = manifest.path.with_name(_partial_name(manifest, secrets.token_hex(4)))
    try:
        with partial.open("xb") as out:
            _fill(out, manifest, source, report)
            out.flush()
            os.fsync(out.fileno())
        partial.rename(archive_of(manifest))
    finally:
        partial.unlink(missing_ok=True)


def _fill(out: BinaryIO, manifest: Manifest, source: Path, report: Report) -> None:
    comment = {"comment": manifest.sha256}
    size_bytes = 0
    with tarfile.TarFile(
        fileobj=out,
        mode="w",
        format=tarfile.PAX_FORMAT,
        pax_headers=comment,
        copybufsize=BLOCK_BYTES,
    ) as archive:
        for number, (entry, content) in enumerate(_in_order(manifest, source), 1):
            member = tarfile.TarInfo(entry.path)
            member.size, member.mtime = entry.size, entry.mtime_ns // 10**9
            archive.addfile(member, content)
            size_bytes += entry.size
            report(number, size_bytes)


def _in_order(manifest: Manifest, source: Path) -> Iterator[tuple[Entry, "io.BytesIO | _Passing"]]:
    """Every file's content, read by many threads, a bounded number of bytes ahead."""
    waiting: deque[tuple[Entry, Future[bytes]]] = deque()
    ahead = 0
    with _readers(source) as read:
        for entry in manifest.files:
            while waiting and ahead + entry.size > AHEAD_BYTES:
                first, content = waiting.popleft()
                ahead -= first.size
                yield first, io.BytesIO(content.result())
            if entry.size > AHEAD_BYTES:
                with _Passing(source, entry) as passing:
                    yield entry, passing
                    passing.require_whole()
            else:
                waiting.append((entry, read(entry)))
                ahead += entry.size
        for first, content in waiting:
            yield first, io.BytesIO(content.result())


@contextmanager
def _readers(source: Path) -> Iterator[Callable[[Entry], Future[bytes]]]:
    """Threads that nobody waits for: a source that hangs must not keep a signal from ending it,
    and a pool's threads are waited for when Python ends."""
    wanted: SimpleQueue[tuple[Entry, Future[bytes]] | None] = SimpleQueue()

    def work() -> None:
        while asked := wanted.get():
            entry, content = asked
            try:
                content.set_result(_read(source, entry))
            except StagingError as error:
                content.set_exception(error)

    def read(entry: Entry) -> Future[bytes]:
        content: Future[bytes] = Future()
        wanted.put((entry, content))
        return content

    for _ in range(READERS):
        Thread(target=work, daemon=True).start()
    try:
        yield read
    finally:
        with suppress(Empty):
            while True:
                wanted.get_nowait()
        for _ in range(READERS):
            wanted.put(None)


def _read(source: Path, entry: Entry) -> bytes:
    with _Passing(source, entry) as passing:
        content = passing.read(entry.size)
        passing.require_whole()
    return content


class _Passing:
    """A file of the source on its way into the archive, counted and hashed."""

    def __init__(self, source: Path, entry: Entry) -> None:
        self._path, self._entry, self._digest = source / entry.path, entry, hashlib.sha256()

    def __enter__(self) -> Self:
        with self._named():
            self._file = self._path.open("rb")
            if os.fstat(self._file.fileno()).st_size != self._entry.size:
                self._file.close()
                raise self._changed()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, fewer only at its end."""
        with self._named():
            block = self._file.read(size)
        self._digest.update(block)
        return block

    def require_whole(self) -> None:
        """It has ended, and was what the manifest says."""
        if self.read(1) or self._digest.hexdigest() != self._entry.checksum:
            raise self._changed()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StagingError(f"pack: {self._entry.path}: {error.strerror}") from error

    def _changed(self) -> StagingError:
        return StagingError(f"pack: {self._entry.path}: changed since its manifest was made")
