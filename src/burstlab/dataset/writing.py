"""Manifests as they are made: every file read once, the result on disk whole or not at all."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from burstlab.dataset import Report, silent
from burstlab.dataset.manifest import (
    IN_FLIGHT,
    SCHEMA,
    Entry,
    Manifest,
    absolute,
    checksum,
    read_manifest,
)
from burstlab.errors import ConfigurationError


def write_manifest(
    path: Path,
    entries: Sequence[Entry],
    *,
    name: str,
    source: str,
    details: Mapping[str, Any],
    root: Path,
    patterns: Sequence[str],
    definition: str = "",
) -> Manifest:
    """Write a manifest, complete or not at all, and read it back.

    A root below the manifest's directory is kept relative, so that both can move together.
    """
    entries = sorted(entries)
    where, beside = absolute(root), absolute(path.parent)
    header = {
        "schema": SCHEMA,
        "name": name,
        "source": source,
        "details": dict(details),
        "root": str(where.relative_to(beside) if where.is_relative_to(beside) else where),
        "patterns": list(patterns),
        "files": len(entries),
        "bytes": sum(entry.size for entry in entries),
        "sha256": _digest(entries),
        "definition": definition,
        "entries": [],
    }
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with partial.open("w", encoding="ascii") as out:
            out.write(json.dumps(header).removesuffix("]}"))
            for i, entry in enumerate(entries):
                out.write(f"{',' if i else ''}\n{json.dumps(entry)}")
            out.write("\n]}\n")
            out.flush()
            os.fsync(out.fileno())
        partial.rename(path)
        _sync_directory(path.parent)
    finally:
        partial.unlink(missing_ok=True)
    return read_manifest(path)


def scan(root: Path, paths: Sequence[str], report: Report = silent) -> list[Entry]:
    """Entries of the files ``paths`` below ``root``: each is read once, several at a time.

    Raises ConfigurationError for a file that can't be read, or that changes meanwhile.
    """
    from concurrent.futures import ThreadPoolExecutor

    entries = []
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        try:
            for entry in pool.map(lambda path: _entry(root, path), paths):
                entries.append(entry)
                report("checksums", len(entries), len(paths))
        finally:
            pool.shutdown(cancel_futures=True)
    return entries


def _entry(root: Path, path: str) -> Entry:
    where = root / path
    try:
        before = where.stat()
        entry = Entry(path, before.st_size, before.st_mtime_ns, checksum(where))
        after = where.stat()
    except OSError as error:
        raise ConfigurationError(f"{where}: {error.strerror}") from error
    if (after.st_size, after.st_mtime_ns) != (entry.size, entry.mtime_ns):
        raise ConfigurationError(f"{where}: changes while its manifest is made: stop its writer")
    return entry


def _digest(entries: Iterable[Entry]) -> str:
    from hashlib import sha256

    digest = sha256()
    for line in _listing(entries):
        digest.update(line)
    return digest.hexdigest()


def _listing(entries: Iterable[Entry]) -> Iterator[bytes]:
    for entry in entries:
        yield b"%s  %s\n" % (entry.checksum.encode(), os.fsencode(entry.path))


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
