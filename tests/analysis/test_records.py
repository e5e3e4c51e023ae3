"""Records into tables: nothing dropped, and a file at fault named with its field."""

import json
from pathlib import Path

import polars as pl
import pytest

from analysis.records import RecordError, load
from analysis.tables import Tables
from burstlab.record import Metric
from tests.analysis.conftest import Make


def edit(path: Path, *keys: str, value: object = None, remove: bool = False) -> None:
    """Set or remove one field of a record file."""
    document = json.loads(path.read_text())
    place = document
    for key in keys[:-1]:
        place = place[key]
    if remove:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    path.write_text(json.dumps(document))


def test_every_record_is_a_cell_whatever_its_status(make: Make, tmp_path: Path) -> None:
    paths = [
        make("pfs"),
        make("gfarm", nodes=2, status="skipped", reason="needs separate hosts"),
        make("nodelocal", status="failed", reason="the check refuses the result"),
    ]
    tables = load([tmp_path])
    assert set(tables.cells["record"]) == {str(path) for path in paths}
    assert dict(tables.cells.select("storage", "status").iter_rows()) == {
        "pfs": "ok",
        "gfarm": "skipped",
        "nodelocal": "failed",
    }
    assert paths[2].name == "failed.json"
    assert tables.ok().cells["storage"].to_list() == ["pfs"]


def test_tables_hold_what_the_records_say(make: Make, tmp_path: Path) -> None:
    path = make(
        metrics=(Metric("workflow_time", 12.5, "s", "lower"),),
        operations=[("mDiff", 0.5), ("mAdd", 2.0)],
        parameters={"tiles": "4", "engine": "rake"},
        issues=("warm",),
    )
    tables = load([tmp_path])
    cell = tables.cells.row(0, named=True)
    assert cell["record"] == str(path)
    assert cell["parameters"] == "engine=rake,tiles=4"
    assert cell["storage_emulated"] is True
    assert cell["dataset_source"] == "synthetic"
    assert cell["issues"] == ["warm"]
    assert "metadata_latency_ms 1.0" in cell["pfs"]
    assert tables.metrics.row(0) == (str(path), "workflow_time", 12.5, "s", "lower")
    assert tables.operations["operation"].to_list() == ["mDiff", "mAdd"]
    assert tables.operations["elapsed_s"].to_list() == [0.5, 2.0]
    assert tables.spans.filter(pl.col("name") == "run")["elapsed_s"].to_list() == [0.6]


def test_a_record_given_twice_counts_once(make: Make, tmp_path: Path) -> None:
    assert len(load([make(), tmp_path]).cells) == 1


def test_tables_survive_their_files(make: Make, tmp_path: Path) -> None:
    make()
    make("gfarm", nodes=2, status="skipped", reason="needs separate hosts")
    tables = load([tmp_path])
    tables.write(tmp_path / "tables")
    again = Tables.read(tmp_path / "tables")
    for name in ("cells", "spans", "metrics", "operations"):
        assert getattr(again, name).equals(getattr(tables, name)), name


@pytest.mark.parametrize(
    ("keys", "change", "told"),
    [
        (("schema",), {"value": "burstlab.record/0"}, "schema: 'burstlab.record/0' is not"),
        (("schema",), {"remove": True}, "schema: None is not"),
        (("status",), {"value": "fine"}, "status: 'fine' is none of ok, failed, skipped"),
        (("cell", "nodes"), {"value": "two"}, "cell.nodes: Input should be a valid integer"),
        (("cell", "id"), {"remove": True}, "cell.id: Field required"),
        (("spans",), {"value": [{"name": "run"}]}, "spans.0.start_s: "),
        (("storage", "emulated"), {"value": "no"}, "storage.emulated: "),
        (("dataset", "files"), {"value": 1.5}, "dataset.files: "),
    ],
)
def test_a_wrong_record_is_named_with_its_field(
    make: Make, tmp_path: Path, keys: tuple[str, ...], change: dict[str, object], told: str
) -> None:
    make(repeat=1)
    path = make(repeat=2)
    edit(path, *keys, **change)  # type: ignore[arg-type]
    with pytest.raises(RecordError) as raised:
        load([tmp_path])
    assert str(raised.value).startswith(f"{path}: {told}")
    assert "\n" not in str(raised.value)


def test_a_truncated_record_is_named_with_its_line(make: Make, tmp_path: Path) -> None:
    path = make()
    path.write_text(path.read_text()[:100])
    with pytest.raises(RecordError, match=rf"^{path}: line \d+: not JSON"):
        load([tmp_path])


def test_lost_operations_are_named(make: Make, tmp_path: Path) -> None:
    path = make()
    operations = path.with_name("operations.csv")
    operations.unlink()
    with pytest.raises(RecordError, match=f"^{path}: operations: there is no {operations}"):
        load([tmp_path])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("operation,start_s,host,status\nmDiff,1,a,0\n", "elapsed_s"),
        ("operation,start_s,elapsed_s,host,status\nmDiff,1,soon,a,0\n", "soon"),
        ("operation,start_s,elapsed_s,host,status\nmDiff,1,,a,0\n", "elapsed_s"),
        ("", "empty"),
    ],
)
def test_wrong_operations_are_named(make: Make, tmp_path: Path, content: str, told: str) -> None:
    operations = make().with_name("operations.csv")
    operations.write_text(content)
    with pytest.raises(RecordError) as raised:
        load([tmp_path])
    assert str(raised.value).startswith(f"{operations}: ")
    assert told in str(raised.value)


def test_a_place_without_records_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="run the experiment first"):
        load([tmp_path])
