"""Record files into tables. Every record found becomes a row of cells, whatever its status."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter, ValidationError

from analysis.tables import CELLS, METRICS, OF_SOME, OPERATIONS, REQUESTS, SPANS, TRANSFERS, Tables
from burstlab.errors import ConfigurationError
from burstlab.record import FILES, SCHEMA, TRACES, Record

STATUSES = ("ok", "failed", "skipped")


@dataclass(frozen=True)
class Emulation:
    emulated: bool | None = None


@dataclass(frozen=True)
class Staged:
    method: str | None = None


@dataclass(frozen=True)
class Dataset:
    source: str | None = None
    files: int | None = None
    bytes: int | None = None
    staged: Staged = Staged()


@dataclass(frozen=True)
class Cache:
    state: str | None = None
    method: str | None = None


@dataclass(frozen=True)
class Provenance:
    allocation: str | None = None
    burstlab: str | None = None
    git_sha: str | None = None
    git_dirty: bool | None = None
    kernel: str | None = None
    hostname: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    cpu_model: str | None = None
    load_before: float | None = None
    load_after: float | None = None


@dataclass(frozen=True)
class Trace:
    tool: str | None = None


@dataclass(frozen=True)
class Facts:
    """Those parts of a record's free descriptions which become columns."""

    storage: Emulation = Emulation()
    pfs: Emulation = Emulation()
    dataset: Dataset = Dataset()
    cache: Cache = Cache()
    trace: Trace = Trace()
    provenance: Provenance = Provenance()


RECORD = TypeAdapter(Record)
FACTS = TypeAdapter(Facts)


class RecordError(ConfigurationError):
    """A record file that can't be read as one, named with the field at fault."""


def load(places: Iterable[Path]) -> Tables:
    """Tables of all records at or below ``places`` (record files, or directories).

    Raises RecordError for a record of another schema, one with a missing or wrong field, and a
    place without any record: numbers are never drawn from part of what is there.
    """
    paths = [path for place in places for path in find(place)]
    records = [(str(path), read(path)) for path in dict.fromkeys(paths)]
    timed = [(path, record.operations) for path, record in records if record.operations]
    traced = [path for path, record in records if record.trace.get("tables")]
    return Tables(
        cells=pl.DataFrame([_cell(path, record) for path, record in records], schema=CELLS),
        spans=_rows(SPANS, ((path, span) for path, record in records for span in record.spans)),
        metrics=_rows(
            METRICS, ((path, metric) for path, record in records for metric in record.metrics)
        ),
        operations=_beside(timed, OPERATIONS),
        transfers=_beside([(path, TRACES[0]) for path in traced], TRANSFERS),
        requests=_beside([(path, TRACES[1]) for path in traced], REQUESTS),
    )


def read(path: Path) -> Record:
    """One record file, checked against the classes of burstlab.record."""
    text = path.read_text()
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise RecordError(f"{path}: line {error.lineno}: not JSON: {error.msg}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise RecordError(
            f"{path}: schema: {schema!r} is not {SCHEMA!r}; delete the file and run the cell again"
        )
    try:
        record = RECORD.validate_json(text, strict=True)
        FACTS.validate_json(text, strict=True)
    except ValidationError as error:
        raise RecordError(f"{path}: {_first(error)}") from error
    if record.status not in STATUSES:
        raise RecordError(f"{path}: status: {record.status!r} is none of {', '.join(STATUSES)}")
    return record


def find(place: Path) -> list[Path]:
    """The record files at or below ``place``. Raises RecordError when there is none."""
    if place.is_file():
        return [place]
    found = sorted(path for name in FILES for path in place.rglob(name))
    if not found:
        raise RecordError(f"{place}: no record.json or failed.json here; run the experiment first")
    return found


def _first(error: ValidationError) -> str:
    """Field and fault of the first thing wrong, in one line."""
    fault = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in fault["loc"])
    value = "" if fault["type"] == "missing" else f", not {fault['input']!r}"
    return f"{field}: {fault['msg']}{value}"


def _cell(path: str, record: Record) -> dict[str, Any]:
    cell, made, dataset = record.cell, record.provenance, record.dataset
    return {
        "record": path,
        "cell": cell.id,
        **{name: getattr(record, name) for name in ("status", "reason", "exit_status", "started")},
        **{
            name: getattr(cell, name)
            for name in ("experiment", "scale", "workload", "storage", "staging", "dataset")
        },
        "nodes": cell.nodes,
        "parameters": _slug(cell.parameters),
        "repeat": cell.repeat,
        "storage_emulated": record.storage.get("emulated"),
        "pfs_emulated": record.pfs.get("emulated"),
        "pfs": _told(record.pfs),
        "dataset_source": dataset.get("source"),
        "dataset_files": dataset.get("files"),
        "dataset_bytes": dataset.get("bytes"),
        "staging_method": dataset.get("staged", {}).get("method"),
        "cache_state": record.cache.get("state"),
        "cache_method": record.cache.get("method"),
        "hosts": list(record.hosts),
        **{name: made.get(name) for name in (f.name for f in fields(Provenance))},
        "traced": bool(record.trace),
        "workload_facts": _told(record.workload_facts),
        "issues": list(record.issues),
    }


def _slug(parameters: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(parameters.items())) or "default"


def _told(description: Mapping[str, Any]) -> list[str]:
    """Facts in words; ``emulated`` has a column of its own."""
    return [f"{name} {value}" for name, value in description.items() if name != "emulated"]


def _rows(schema: pl.Schema, parts: Iterator[tuple[str, Any]]) -> pl.DataFrame:
    columns = [name for name in schema if name != "record"]
    rows = [(path, *(getattr(part, name) for name in columns)) for path, part in parts]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _beside(files: list[tuple[str, str]], schema: pl.Schema) -> pl.DataFrame:
    """The rows of a table that some records have beside them: (record, name of the file)."""
    empty = pl.DataFrame(schema=schema)
    return pl.concat([empty, *(_table(record, name, schema) for record, name in files)])


def _table(record: str, name: str, schema: pl.Schema) -> pl.DataFrame:
    """The file beside the record; columns it has beyond ours are left out."""
    path = Path(record).parent / name
    wanted = {column: kind for column, kind in schema.items() if column != "record"}
    optional = set(OF_SOME) if schema is OPERATIONS else set()
    try:
        table = pl.read_csv(path, schema_overrides=wanted)
        for column in optional - set(table.columns):
            table = table.with_columns(pl.lit(None, wanted[column]).alias(column))
        table = table.select(pl.lit(record).alias("record"), *wanted)
    except FileNotFoundError as error:
        field = "trace" if name in TRACES else "operations"
        raise RecordError(f"{record}: {field}: there is no {path}") from error
    except pl.exceptions.PolarsError as error:
        raise RecordError(f"{path}: {str(error).splitlines()[0]}") from error
    for column in wanted.keys() - optional:
        if table[column].has_nulls():
            raise RecordError(f"{path}: {column}: a row has none")
    return table
