"""The record of a cell: one JSON file, written once, at the end (docs/records.md).

``record.json`` holds a cell that ran or was skipped, ``failed.json`` one that failed; the two
never lie side by side, so whoever finds a record.json may draw it.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from burstlab.errors import BurstlabError

SCHEMA = "burstlab.record/1"
FILES = ("failed.json", "record.json")
LABELS = ("experiment", "scale", "workload", "dataset", "repeat")  # others are parameters
TRACES = ("trace-files.csv", "trace-requests.csv")  # beside the record of a traced cell


class Span(NamedTuple):
    """A timed phase; ``start_s`` is Unix time, ``elapsed_s`` from a monotonic clock."""

    name: str
    start_s: float
    elapsed_s: float


class Metric(NamedTuple):
    """A number that the workload reports; ``better`` is "lower" or "higher"."""

    name: str
    value: float
    unit: str
    better: str


class CellKey(NamedTuple):
    """What the cell was: the point of the matrix, and the id of this run of it."""

    id: str
    experiment: str = ""
    scale: str = ""
    workload: str = ""
    storage: str = ""
    staging: str = ""
    dataset: str = ""
    nodes: int = 1
    parameters: Mapping[str, str] = {}
    repeat: int = 1

    @classmethod
    def labelled(cls, identifier: str, labels: Mapping[str, str], **more: Any) -> "CellKey":
        """Of what `--label` gives, and ``more`` fields; ``repeat`` is a number."""
        own = {name: labels[name] for name in LABELS if name in labels}
        parameters = {name: text for name, text in labels.items() if name not in LABELS}
        return cls(identifier, **{**own, **more}, parameters=parameters)


class Record(NamedTuple):
    """Everything known of one run of one cell."""

    status: str  # ok, failed, skipped
    reason: str  # empty when ok
    exit_status: int
    cell: CellKey
    started: str  # ISO 8601 with offset
    spans: tuple[Span, ...] = ()
    metrics: tuple[Metric, ...] = ()
    operations: str | None = None  # file beside the record, one row per timed command
    workload_facts: Mapping[str, Any] = {}
    storage: Mapping[str, Any] = {}
    pfs: Mapping[str, Any] = {}
    dataset: Mapping[str, Any] = {}
    cache: Mapping[str, Any] = {}
    hosts: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    trace: Mapping[str, Any] = {}  # of a traced cell: by what; where, sums, the tables beside it
    provenance: Mapping[str, Any] = {}
    issues: tuple[str, ...] = ()  # why the numbers may not be trusted
    schema: str = SCHEMA


def write(record: Record, directory: Path) -> Path:
    """Write the record (complete or not at all) and remove its opposite; returns the path.

    Raises BurstlabError when it can't be written.
    """
    name, opposite = FILES if record.status == "failed" else reversed(FILES)
    path, partial = directory / name, directory / f".{name}.partial"
    fields = {
        **record._asdict(),
        "cell": record.cell._asdict(),
        "spans": [span._asdict() for span in record.spans],
        "metrics": [metric._asdict() for metric in record.metrics],
    }
    try:
        with partial.open("w") as out:
            json.dump({"schema": fields.pop("schema"), **fields}, out, indent=1)
            out.write("\n")
            out.flush()
            os.fsync(out.fileno())
        (directory / opposite).unlink(missing_ok=True)
        partial.rename(path)
    except OSError as error:
        with suppress(OSError):  # the one to be told is the first
            partial.unlink(missing_ok=True)
        ended = f"; the cell's reason was: {record.reason}" if record.reason else ""
        raise BurstlabError(
            f"{path}: the record can't be written: {error.strerror}{ended}"
        ) from error
    return path
