"""Copies a data set to where it is wanted, or results to where they are kept.

A file is written under a partial name, its size and checksum are compared, and only then does
it get its own name: what has its name is whole.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from burstlab.dataset.manifest import Manifest, checksum, read_manifest
from burstlab.errors import StagingError
from burstlab.nodes import Node

IN_FLIGHT = 16  # latency-bound sources want many files at once (recipes: 16 reach their limit)
PARTIAL = ".burstlab-partial"


def stage_in(manifest: Manifest, source: Path, target: Path) -> int:
    """Copy the manifest's files from ``source`` to the new directory ``target``; returns bytes.

    Raises StagingError naming the first file that is missing, differs or can't be written.
    """
    directories = {target / Path(entry.path).parent for entry in manifest.files}
    try:
        for directory in sorted({target, *directories}):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StagingError(f"stage_in: {error.filename}: {error.strerror}") from error
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        copies = [
            pool.submit(_copy, source / e.path, target / e.path, e.size, e.checksum)
            for e in manifest.files
        ]
        try:
            return sum(copy.result() for copy in copies)
        finally:
            pool.shutdown(cancel_futures=True)


def stage_in_here(node: Node, manifest: str, source: str, target: str) -> int:
    """Node action: the same, on every host whose storage is its own; the manifest is a path that
    all hosts see."""
    return stage_in(read_manifest(Path(manifest)), Path(source), Path(target))


def make_work_here(node: Node, path: str) -> None:
    """Node action: the workload's directory, on every host whose storage is its own."""
    Path(path).mkdir(0o700)


def stage_out(source: Path, patterns: Iterable[str], target: Path) -> int:
    """Copy what matches ``patterns`` below ``source`` to ``target``; returns bytes.

    Raises StagingError when a pattern matches nothing, or a file can't be copied whole.
    """
    copied = 0
    for pattern in patterns:
        found = sorted(path for path in source.glob(pattern) if path.is_file())
        if not found:
            raise StagingError(f"stage_out: nothing matches {pattern!r} in the cell's directory")
        for path in found:
            to = target / path.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            copied += _copy(path, to, path.stat().st_size, None)
    return copied


def _copy(source: Path, target: Path, size: int, expected: str | None) -> int:
    partial = target.with_name(f".{target.name}{PARTIAL}")
    try:
        _copy_bytes(source, partial)
        written = partial.stat().st_size
        if written != size:
            raise StagingError(f"{source}: {written} bytes arrived, {size} expected")
        if checksum(partial) != (expected or checksum(source)):
            raise StagingError(f"{source}: the copy at {target} has another checksum")
        partial.rename(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StagingError(f"{source} to {target}: {error.strerror}") from error
    except StagingError:
        partial.unlink(missing_ok=True)
        raise
    return size


def _copy_bytes(source: Path, target: Path) -> None:
    with source.open("rb", buffering=0) as reader, target.open("wb", buffering=0) as writer:
        block = memoryview(bytearray(1 << 20))
        while count := reader.readinto(block):
            done = 0
            while done < count:
                done += writer.write(block[done:count])
        os.fsync(writer.fileno())
