"""TeraSort's figures."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis import records, registry
from analysis.registry import Drawing
from tests.analysis.conftest import Make
from tests.analysis.drawn import outside, words

HEADER = "operation,start_s,elapsed_s,host,status,read_bytes,written_bytes\n"
# 20 GB: 596 maps of one block; sizes as the counters of a real run of 1 GB had them, times 20
TASKS = [
    *[("TeraGen-map", 40.0, 186, 10_084_000_000)] * 2,
    *[("TeraSort-map", 2.4, 33_959_153, 35_191_932)] * 596,
    ("TeraSort-reduce", 90.0, 20_800_000_000, 40_962_000_000),
    ("TeraValidate-map", 60.0, 20_156_000_000, 294_646),
    ("TeraValidate-reduce", 3.0, 94, 294_627),
]


@pytest.fixture
def draw(make: Make, tmp_path: Path) -> Any:
    """Figure NUMBER of: gfarm and pfs on 2 and 8 nodes, two runs each; beeond skipped."""
    for storage in ("gfarm", "pfs"):
        for nodes in (2, 8):
            for repeat in (1, 2):
                sorted_by(make(storage, nodes, repeat), nodes * repeat)
    sorted_by(make("beeond", 2, status="skipped", reason="beeond is not here"), 0)
    tables = records.load([tmp_path / "results"])

    def drawn(number: int) -> Drawing:
        return registry.find(f"sawada-{number}").draw(tables)

    return drawn


def sorted_by(path: Path, seconds: float) -> None:
    """Make the record at ``path`` one of TeraSort's."""
    record = json.loads(path.read_text())
    record["cell"]["workload"] = "terasort"
    if seconds:
        names = ("teragen_time", "terasort_time", "teravalidate_time")
        record["metrics"] = [
            {"name": name, "value": i * seconds, "unit": "s", "better": "lower"}
            for i, name in enumerate(names, 1)
        ]
        record["workload_facts"] = {"rows": "200000000", "hadoop": "3.4.2"}
        rows = (f"{name},{i},{s},n1,0,{r},{w}\n" for i, (name, s, r, w) in enumerate(TASKS))
        (path.parent / "operations.csv").write_text(HEADER + "".join(rows))
    path.write_text(json.dumps(record))


def test_notes_about_one_thing_have_one_heading(draw: Any) -> None:
    assert words(draw(8).canvas).split().count("Paper") == 1


@pytest.mark.parametrize(("number", "factor"), [(5, 1), (6, 2), (7, 3)])
def test_the_time_of_each_program_against_nodes(draw: Any, number: int, factor: int) -> None:
    drawing = draw(number)
    medians = drawing.data.filter((pl.col("kind") == "median") & (pl.col("storage") == "gfarm"))
    assert medians["nodes"].to_list() == [2, 8]
    assert medians["value_s"].to_list() == [factor * 3.0, factor * 12.0]
    said = words(drawing.canvas)
    assert "beeond is not here" in said and "20,000 MB sorted here" in said
    assert "Cygnus; Hadoop YARN, 20 GB" in said
    assert outside(drawing.canvas) == []


def test_the_bytes_of_each_task_on_the_burst_buffer(draw: Any) -> None:
    drawing = draw(8)
    said = words(drawing.canvas)
    assert "gfarm, in place · 8 nodes · 2 runs pooled" in said
    assert "the reduce wrote 2.05 times as much, the paper's 2.05 times" in said
    assert "33.96 MB" in said and "40,962 MB" in said
    assert "20 GB read, then 40955 MB written" in said
    maps = drawing.data.filter(pl.col("operation") == "TeraSort-map")
    assert maps.select("direction", "count", "runs").rows() == [
        ("read", 1192, 2),
        ("written", 1192, 2),
    ]
    low, high = maps.row(0)[2:4]
    assert low <= 33_959_153 < high
    assert outside(drawing.canvas) == []


def test_without_a_burst_buffer_the_figure_says_so(make: Make, tmp_path: Path) -> None:
    sorted_by(make("pfs", 2), 1)
    sorted_by(make("beeond", 2, status="skipped", reason="beeond is not here"), 0)
    drawing = registry.find("sawada-8").draw(records.load([tmp_path / "results"]))
    said = words(drawing.canvas)
    assert "no run on a burst buffer (beeond, gfarm, provided)" in said
    assert "beeond is not here" in said
    assert drawing.data.is_empty()
    assert outside(drawing.canvas) == []
