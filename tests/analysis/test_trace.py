"""Figures of traced cells, and that their times are on no other."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis import records, registry
from analysis.__main__ import main
from analysis.records import RecordError
from analysis.sizes import histograms
from burstlab.record import TRACES
from tests.analysis.conftest import Make
from tests.analysis.drawn import outside, words

FILES = """\
host,process,program,place,path,reads,read_bytes,writes,written_bytes
n1,1,mDiff,work,a,2,4096,0,0
n1,2,mDiff,work,a,2,4096,0,0
n1,2,mDiff,work,b,0,0,1,100
n2,1,mDiff,work,b,1,100,0,0
n1,2,mDiff,local,c,0,0,3,3000
n1,2,mDiff,elsewhere,/lib/x,9,999999,0,0
"""
REQUESTS = """\
host,program,place,direction,size_bytes,calls
n1,mDiff,work,read,2048,4
n1,mDiff,work,read,2047,1
n1,mDiff,work,read,0,7
n1,mDiff,local,written,1000,3
n1,mDiff,elsewhere,read,111111,9
"""
TRACE = {"tool": "strace 6.1", "hosts": ["n1"], "tables": list(TRACES)}


def traced(make: Make, **fields: Any) -> Path:
    path = make("gfarm", trace=TRACE, issues=("traced by strace 6.1",), **fields)
    for name, text in zip(TRACES, (FILES, REQUESTS), strict=True):
        (path.parent / name).write_text(text)
    return path


def bins(number: int, where: Path, direction: str) -> dict[int, int]:
    """Lower end of a bin: count, of the occupied ones."""
    drawing = registry.find(f"trace-{number}").draw(records.load([where]))
    assert outside(drawing.canvas) == []
    found = drawing.data.filter(pl.col("direction") == direction, pl.col("count") > 0)
    return dict(found.select("low_bytes", "count").iter_rows())


def test_bytes_of_each_file(make: Make, tmp_path: Path) -> None:
    traced(make)
    assert bins(1, tmp_path, "read") == {64: 1, 8192: 1}
    assert bins(1, tmp_path, "written") == {64: 1, 2048: 1}


def test_bytes_of_each_process(make: Make, tmp_path: Path) -> None:
    traced(make)
    assert bins(2, tmp_path, "read") == {64: 1, 4096: 2}
    assert bins(2, tmp_path, "written") == {2048: 1}


def test_sizes_of_calls(make: Make, tmp_path: Path) -> None:
    traced(make)
    assert bins(3, tmp_path, "read") == {1024: 1, 2048: 4}
    assert bins(3, tmp_path, "written") == {512: 3}
    drawing = registry.find("trace-3").draw(records.load([tmp_path]))
    assert "7 calls that moved nothing" in words(drawing.canvas)


def test_runs_are_pooled_and_kinds_of_runs_are_not(make: Make, tmp_path: Path) -> None:
    for repeat, nodes in ((1, 1), (2, 1), (1, 2)):
        traced(make, repeat=repeat, nodes=nodes)
    data = registry.find("trace-3").draw(records.load([tmp_path])).data
    told = dict(data.select("runs_of", "runs").iter_rows())
    assert sorted(told.values()) == [1, 2]
    assert any("2 runs pooled" in name for name in told)


@pytest.mark.slow
def test_no_other_figure_shows_a_traced_run(make: Make, tmp_path: Path) -> None:
    make("gfarm", workflow_time=10.0)
    traced(make, repeat=2, workflow_time=777.0, operations=[("mDiff", 777.0)])
    tables = records.load([tmp_path])
    for name, figure in registry.figures().items():
        text = figure.draw(tables).data.write_csv()
        assert ("777" in text) is False, name
    assert main(["tell", "--records", str(tmp_path / "results"), "--output", str(tmp_path)]) == 0
    assert "n_with_issues" in (tmp_path / "phases.csv").read_text()
    assert ",2," not in (tmp_path / "phases.csv").read_text(), "one run each"
    assert "1 cell, left out of whatever shows times" in (tmp_path / "summary.rst").read_text()


def test_without_a_traced_run_they_say_so(make: Make, tmp_path: Path) -> None:
    make("pfs")
    for number in (1, 2, 3):
        drawing = registry.find(f"trace-{number}").draw(records.load([tmp_path]))
        assert drawing.data.is_empty()
        assert "no run was traced" in words(drawing.canvas)
        assert outside(drawing.canvas) == []


def test_only_traced_runs_still_make_a_timing_table(make: Make, tmp_path: Path) -> None:
    traced(make)
    assert main(["tell", "--records", str(tmp_path / "results"), "--output", str(tmp_path)]) == 0


def test_a_traced_run_that_ended_before_its_trace_was_written(make: Make, tmp_path: Path) -> None:
    make("gfarm", trace={"tool": "strace 6.1"})
    tables = records.load([tmp_path])
    assert tables.transfers.is_empty() and tables.timed().cells.is_empty()


def test_a_missing_table_is_named(make: Make, tmp_path: Path) -> None:
    path = traced(make)
    (path.parent / TRACES[1]).unlink()
    with pytest.raises(RecordError, match=f"trace: there is no .*{TRACES[1]}"):
        records.load([tmp_path])


def test_powers_of_two_are_in_the_bin_that_begins_with_them() -> None:
    sizes = [2**k + more for k in range(1, 50) for more in (-1, 0)]
    table = pl.DataFrame({"size_bytes": sizes}).with_columns(
        runs_of=pl.lit("x"), storage=pl.lit("pfs"), runs=1, direction=pl.lit("read"), count=1
    )
    found = histograms(table)
    assert found["low_bytes"].to_list() == [2**k for k in range(50)]
    assert found["count"].to_list() == [1, *[2] * 48, 1]
