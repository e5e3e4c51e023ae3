"""A data set as one tar file: made once, beside its manifest, and unpacked on each node."""

import hashlib
import io
import os
import tarfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from burstlab.dataset.manifest import Entry, Manifest
from burstlab.errors import StagingError
from burstlab.staging.copying import PARTIAL

READERS = 64  # the source is bound by latency: tar(1), with one, took six hours in the paper
AHEAD_BYTES = 256 << 20

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


def pack(manifest: Manifest, source: Path, report: Report) -> None:
    """Make the archive. Raises StagingError naming the first file that is not as it should be."""
    path = archive_of(manifest)
    partial = path.with_name(f".{path.name}{PARTIAL}")
    comment = {"comment": manifest.sha256}
    try:
        with (
            partial.open("wb") as out,
            tarfile.open(
                fileobj=out,
                mode="w",
                format=tarfile.PAX_FORMAT,
                pax_headers=comment,
                bufsize=1 << 20,
            ) as archive,  # fmt: skip
        ):
            size_bytes = 0
            for number, (entry, content) in enumerate(_in_order(manifest, source), 1):
                member = tarfile.TarInfo(entry.path)
                member.size, member.mtime = entry.size, entry.mtime_ns // 10**9
                archive.addfile(member, io.BytesIO(content))
                size_bytes += entry.size
                report(number, size_bytes)
            archive.close()
            out.flush()
            os.fsync(out.fileno())
        partial.rename(path)
    except OSError as error:
        raise StagingError(f"{path}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)


def _in_order(manifest: Manifest, source: Path) -> Iterator[tuple[Entry, bytes]]:
    """Every file's content, read by many threads, a bounded number of bytes ahead."""
    waiting: deque[tuple[Entry, Future[bytes]]] = deque()
    ahead = 0
    with ThreadPoolExecutor(READERS) as pool:
        try:
            for entry in manifest.files:
                while waiting and ahead + entry.size > AHEAD_BYTES:
                    ahead -= waiting[0][0].size
                    first, content = waiting.popleft()
                    yield first, content.result()
                waiting.append((entry, pool.submit(_read, source, entry)))
                ahead += entry.size
            for first, content in waiting:
                yield first, content.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _read(source: Path, entry: Entry) -> bytes:
    try:
        content = (source / entry.path).read_bytes()
    except OSError as error:
        raise StagingError(f"pack: {entry.path}: {error.strerror}") from error
    if len(content) != entry.size or hashlib.sha256(content).hexdigest() != entry.checksum:
        raise StagingError(f"pack: {entry.path}: changed since its manifest was made")
    return content
