"""Copies a data set to where it is wanted, or results to where they are kept.

The bytes are moved by burstio: a file is written under a partial name, its size and checksum are
compared on the way, and only then does it get its own name: what has its name is whole.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from burstlab.dataset.manifest import Manifest
from burstlab.errors import StagingError
from burstlab.nodes import Node, Nodes


def stage_in(manifest: Manifest, source: Path, target: Path) -> int:
    """Copy the manifest's files from ``source`` to the directory ``target``; returns bytes.

    Raises StagingError naming the first file that is missing, differs or can't be written.
    """
    from burstlab.staging.copying import begin, complete, rows

    done = complete(begin(source, target, rows(manifest)), "stage_in")
    if done.files != manifest.file_count:
        raise StagingError(f"stage_in: {done.files} files of {manifest.file_count} arrived")
    return done.size_bytes


def stage_to(
    nodes: Nodes, manifest: Manifest, source: Path, target: Path, hosts: Sequence[str], method: str
) -> dict[str, Any]:
    """The same to each of ``hosts``, by one of STAGING_METHODS; what the record tells of it.

    Manifest and source are paths that all hosts see. Raises StagingError, host first.
    """
    from burstlab.staging.hosts import Staging

    targets = dict.fromkeys(hosts, target)
    return Staging(nodes, manifest, source, targets).run(method).describe()


def make_work_here(node: Node, path: str) -> None:
    """Node action: the workload's directory, on every host whose storage is its own."""
    Path(path).mkdir(0o700)


def stage_out(source: Path, patterns: Iterable[str], target: Path) -> int:
    """Copy what matches ``patterns`` below ``source`` to ``target``; returns bytes.

    Raises StagingError when a pattern matches nothing, or a file can't be copied whole.
    """
    from burstlab.staging.copying import begin, complete

    sizes: dict[str, int] = {}
    for pattern in patterns:
        found = sorted(path for path in source.glob(pattern) if path.is_file())
        if not found:
            raise StagingError(f"stage_out: nothing matches {pattern!r} in the cell's directory")
        sizes |= {str(path.relative_to(source)): path.stat().st_size for path in found}
    files = [(path, size, "") for path, size in sizes.items()]
    return complete(begin(source, target, files), "stage_out").size_bytes
