"""burstio's copy engine as the rest of burstlab uses it; imported only where data is staged."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from burstlab.dataset.manifest import Entry, Manifest
from burstlab.errors import StagingError

try:
    import burstio
except ImportError as error:
    raise StagingError(
        f"burstio, which copies the data, is not here ({error}): make setup"
    ) from error

Row = tuple[str, int, str]  # path below both directories, size in bytes, SHA-256 or nothing
PARTIAL = ".burstlab-partial"  # as burstio has it: ends the name of what is not whole
LONGEST_STOP_S = 8.0  # burstio leaves threads behind that hang in a dead source for 5 s
LOOK_S = 0.1  # between two looks at a staging, and so before a signal is heeded


class Progress(NamedTuple):
    """How far a staging has come."""

    files: int  # whole in the target
    present: int  # of these: there before
    size_bytes: int  # in the target, parts of files included
    in_flight: int  # files that may be copied at once


def rows(manifest: Manifest, part: slice = slice(None)) -> list[Row]:
    """What burstio wants to know of a data set, or of a part of it."""
    entries: Sequence[Entry] = manifest.files[part]
    return [(entry.path, entry.size, entry.checksum) for entry in entries]


def begin(source: Path, target: Path, files: Iterable[Row]) -> burstio.Copy:
    """Copy in the background. Raises StagingError when the target can't be used."""
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return burstio.Copy(source, target, list(files))
    except OSError as error:
        raise StagingError(f"{error.filename}: {error.strerror}") from error
    except burstio.StagingFault as fault:
        raise StagingError(str(fault)) from fault


def look(copy: burstio.Copy) -> Progress:
    """How far it has come."""
    now = copy.progress()
    return Progress(now.files, now.present, now.size_bytes, now.in_flight)


def complete(
    copy: burstio.Copy, doing: str, report: Callable[[Progress], None] | None = None
) -> Progress:
    """Wait for the end. Raises StagingError; whatever else is raised meanwhile cancels it."""
    try:
        while not copy.wait(LOOK_S):
            if report:
                report(look(copy))
    except burstio.StagingFault as fault:
        raise StagingError(f"{doing}: {fault}") from fault
    except BaseException:
        stop(copy)
        raise
    return look(copy)


def stop(copy: burstio.Copy) -> None:
    """Cancel it, and wait until it has taken away what is not whole."""
    copy.cancel()
    with suppress(burstio.StagingFault):  # that it was cancelled, or why it had ended before
        copy.wait(LONGEST_STOP_S)
