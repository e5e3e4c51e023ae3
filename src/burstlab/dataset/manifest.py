"""The manifest of a data set: which files it has, how long they are, and their checksums.

The file is JSON in lines. The first line is the header, with the list of entries left open; one
line for each file follows::

    {"schema": "burstlab.manifest/1", "name": "2mass", ..., "files": 10, "entries": [
    ["a.fits", 2111040, 1700000000000000000, "48fde65a737b..."],
    ...
    ]}

So any JSON reader reads it, and a cell of a million files reads one line.

Checksums are SHA-256: server CPUs have instructions for it (since Zen and Ice Lake; 1.7 GiB/s
per core on the EPYC it was tried on, BLAKE2b 0.8), and a parallel file system rarely gives one
reader more; it is in the standard library and in well-kept Rust crates, and `sha256sum` checks
it by hand. BLAKE3 is faster on data in memory, but is one package more on every node.

The digest of the whole is the SHA-256 of what `sha256sum` prints for all files in order of path:
it is the same wherever the files lie and whenever they were copied.
"""

import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from burstlab.errors import ConfigurationError

SCHEMA = "burstlab.manifest/1"
IN_FLIGHT = 16  # files read at once: over a network, most of the time is latency
MOST_NAMED = 10
FEW_FILES = 1000  # what a cell looks at before it starts: 3 ms here, 1 s where a stat takes 1 ms
BATCH = 256  # entries per thread and turn


class Entry(NamedTuple):
    """One file: path relative to the root, size [byte], time of change [ns], SHA-256."""

    path: str
    size: int
    mtime_ns: int  # a hint only: where it is the same, verify() trusts the content
    checksum: str


@dataclass(frozen=True)
class Manifest:
    """A data set as it was when its manifest was made; the entries are read when asked for."""

    path: Path  # of the manifest itself
    name: str
    source: str  # given, fetched or synthetic
    details: Mapping[str, Any]  # of the source: directory, region, arguments of the generator
    root: Path  # absolute; entries are relative to it
    patterns: tuple[str, ...]  # of the files below root that belong to the data set
    file_count: int
    size_bytes: int
    sha256: str  # digest of the whole
    definition: str = ""  # what it was made from: burstlab.dataset.make.conditions

    @cached_property
    def files(self) -> tuple[Entry, ...]:
        """All entries, in order of path. Raises ConfigurationError when the file is damaged."""
        try:
            rows = json.loads(self.path.read_bytes())["entries"]
            entries = tuple(Entry(*row) for row in rows)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise _unreadable(self.path, error) from error
        if len(entries) != self.file_count:
            problem = f"{len(entries)} entries, {self.file_count} in the header"
            raise _unreadable(self.path, problem)
        return entries

    def sample(self, count: int) -> list[Entry]:
        """Up to ``count`` entries, evenly spread over the manifest, always the same ones."""
        length = self.path.stat().st_size
        found = {}
        with self.path.open("rb") as lines:
            for i in range(count):
                lines.seek(length * i // count)
                lines.readline()
                line = lines.readline().rstrip(b",\n")
                if line.startswith(b"["):
                    entry = Entry(*json.loads(line))
                    found[entry.path] = entry
        return list(found.values())

    def describe(self) -> dict[str, Any]:
        """For the record of a cell."""
        return {
            "name": self.name,
            "source": self.source,
            "files": self.file_count,
            "bytes": self.size_bytes,
            "manifest_sha256": self.sha256,
        }


def read_manifest(path: Path) -> Manifest:
    """Read the header. Raises ConfigurationError when there is none, or of another kind."""
    try:
        with path.open("rb") as lines:
            header = json.loads(lines.readline() + b"]}")
        if header["schema"] != SCHEMA:
            raise ValueError(f"schema {header['schema']!r}, {SCHEMA!r} is wanted")
        return Manifest(
            path=path,
            name=header["name"],
            source=header["source"],
            details=header["details"],
            root=absolute(path.parent / header["root"]),
            patterns=tuple(header["patterns"]),
            file_count=header["files"],
            size_bytes=header["bytes"],
            sha256=header["sha256"],
            definition=header.get("definition", ""),
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _unreadable(path, error) from error


def verify(manifest: Manifest, *, full: bool = False) -> list[str]:
    """The files that are missing, truncated, changed or new; empty when there is none.

    At most ``MOST_NAMED`` are named, then they are counted. A file with another size is told
    without being read; one with the same size and time of change is trusted unless ``full``.
    """
    if not manifest.root.is_dir():
        return [f"{manifest.root}: the directory is gone"]
    known = {entry.path for entry in manifest.files}
    found = members(manifest.root, manifest.patterns)
    new = [path for path in found if path not in known and (manifest.root / path).is_file()]
    faults = _faults(manifest, manifest.files, full)
    return _named(faults + [f"{path}: is not in the manifest" for path in new])


def spot_check(manifest: Manifest) -> list[str]:
    """What ``verify`` finds in at most ``FEW_FILES`` files: cheap whatever the data set's size.

    A data set with more of them is sampled evenly, and new files in it are not looked for.
    """
    if manifest.file_count <= FEW_FILES:
        return verify(manifest)
    if not manifest.root.is_dir():
        return [f"{manifest.root}: the directory is gone"]
    return _named(_faults(manifest, manifest.sample(FEW_FILES), full=False))


def checksum(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal digits. Raises OSError."""
    from hashlib import file_digest  # not at the top: loading OpenSSL costs every cell 3 ms

    with path.open("rb", buffering=0) as opened:
        return file_digest(opened, "sha256").hexdigest()


def members(root: Path, patterns: Iterable[str]) -> list[str]:
    """Paths below ``root`` that match one of ``patterns`` (glob; ``**`` for any depth).

    Directories may be among them: to ask for each file what it is would double the cost.
    """
    from glob import iglob

    found: set[str] = set()
    for pattern in patterns:  # not Path.glob: that one takes hidden files, such as partial ones
        found.update(iglob(pattern, root_dir=root, recursive=True))  # noqa: PTH207
    return sorted(found)


def absolute(path: Path) -> Path:
    """Absolute, without following links: mount tables and exports are compared as text."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _faults(manifest: Manifest, entries: Sequence[Entry], full: bool) -> list[str]:
    root = str(manifest.root)
    step = 1 if full else BATCH
    batches = [entries[i : i + step] for i in range(0, len(entries), step)]
    if len(batches) == 1:
        return _batch_faults(root, entries, full)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        found = pool.map(lambda batch: _batch_faults(root, batch, full), batches)
        return [fault for faults in found for fault in faults]


def _batch_faults(root: str, entries: Iterable[Entry], full: bool) -> list[str]:
    found = ((entry.path, _fault(f"{root}/{entry.path}", entry, full)) for entry in entries)
    return [f"{path}: {fault}" for path, fault in found if fault]


def _fault(path: str, entry: Entry, full: bool) -> str | None:
    try:
        # Not of a Path: a million of them take 5 s.
        found = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(found.st_mode):
            return "is not a file"
        if found.st_size < entry.size:
            return f"truncated: {found.st_size} of {entry.size} bytes"
        if found.st_size > entry.size:
            return f"changed: {found.st_size} bytes instead of {entry.size}"
        if found.st_mtime_ns == entry.mtime_ns and not full:
            return None
        return None if checksum(Path(path)) == entry.checksum else "changed: has another checksum"
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        return f"can't be read: {error.strerror}"


def _named(faults: list[str]) -> list[str]:
    more = len(faults) - MOST_NAMED
    return [*faults[:MOST_NAMED], f"and {more} more"] if more > 0 else faults


def _unreadable(path: Path, problem: object) -> ConfigurationError:
    if isinstance(problem, OSError):
        problem = problem.strerror
    elif isinstance(problem, json.JSONDecodeError):
        problem = f"not JSON (line {problem.lineno}, column {problem.colno}), so no manifest"
    elif isinstance(problem, KeyError | TypeError):
        problem = "not a manifest of burstlab"
    return ConfigurationError(f"{path}: {problem}: make it with `burstlab dataset make`")
