"""Figures of the storage probe."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis import records, registry
from analysis.registry import Drawing
from tests.analysis.conftest import Make
from tests.analysis.drawn import outside, words

METRICS = {"ready_time": "s", "write_bandwidth": "MB/s", "read_bandwidth": "MB/s"}


@pytest.fixture
def draw(make: Make, tmp_path: Path) -> Any:
    """Figure NUMBER of: gfarm on 1, 2 and 4 nodes, three runs each; beeond skipped."""
    for nodes in (1, 2, 4):
        for repeat in (1, 2, 3):
            probed(make("gfarm", nodes, repeat), repeat)
    for nodes in (1, 2):
        reason = "beeond is not here: BeeGFS's package beeond has it"
        probed(make("beeond", nodes, status="skipped", reason=reason), 0)
    tables = records.load([tmp_path / "results"])

    def drawn(number: int) -> Drawing:
        return registry.find(f"storage-{number}").draw(tables)

    return drawn


def probed(path: Path, number: int) -> None:
    """Make the record at ``path`` one of the probe's."""
    record = json.loads(path.read_text())
    record["cell"]["workload"] = "probe"
    if number:
        record["metrics"] = [
            {"name": name, "value": 10.0 * number, "unit": unit, "better": "lower"}
            for name, unit in METRICS.items()
        ]
        record["workload_facts"] = {"launch": "srun", "stripes": "targets 4, chunk_size 512K"}
    path.write_text(json.dumps(record))


@pytest.mark.parametrize("number", [1, 2])
def test_provisioning_and_teardown_against_nodes(draw: Any, number: int) -> None:
    drawing = draw(number)
    medians = drawing.data.filter(pl.col("kind") == "median")
    assert medians["nodes"].to_list() == [1, 2, 4]
    assert medians["value_s"].to_list() == pytest.approx([0.7] * 3)  # spans are 0.6, 0.7, 0.8 s
    assert medians["n"].to_list() == [3, 3, 3]
    said = words(drawing.canvas)
    assert "beeond is not here" in said and "BeeOND 7.4.7" in said
    assert outside(drawing.canvas) == []


def test_the_table_has_a_row_for_what_could_not_be_had(draw: Any) -> None:
    drawing = draw(3)
    rows = {(row["storage"], row["nodes"]): row for row in drawing.data.iter_rows(named=True)}
    assert set(rows) == {("gfarm", 1), ("gfarm", 2), ("gfarm", 4), ("beeond", 1), ("beeond", 2)}
    gfarm, beeond = rows["gfarm", 4], rows["beeond", 1]
    assert (gfarm["n"], gfarm["write [MB/s]"], gfarm["start [s]"]) == (3, 20.0, pytest.approx(0.7))
    assert gfarm["stripes"] == "targets 4, chunk_size 512K"
    assert gfarm["own disk [%]"] is None
    assert (beeond["n"], beeond["status"], beeond["start [s]"]) == (0, "skipped", None)
    said = words(drawing.canvas)
    assert "targets 4, chunk_size 512K" in said and "skipped" in said
    assert outside(drawing.canvas) == []


def test_without_records_of_the_probe_they_say_so(make: Make, tmp_path: Path) -> None:
    make("pfs")
    tables = records.load([tmp_path / "results"])
    for number in (1, 2, 3):
        drawing = registry.find(f"storage-{number}").draw(tables)
        assert drawing.data.is_empty() and outside(drawing.canvas) == []
