"""The timing table holds the spans of the records and tells what it leaves out."""

import re
from pathlib import Path

import polars as pl

from analysis.phases import as_html, phases
from analysis.records import load
from burstlab.record import Span
from tests.analysis.conftest import Make


def spans(provision: float, run: float) -> tuple[Span, ...]:
    """Written in another order than they happened."""
    return (Span("run", 105.0, run), Span("provision", 100.0, provision))


def test_medians_of_each_span_and_of_their_sum(make: Make, tmp_path: Path) -> None:
    for repeat, run in enumerate((10.0, 30.0, 20.0), start=1):
        make("pfs", repeat=repeat, spans=spans(1.0, run))
    make("gfarm", staging="eager", spans=spans(2.0, 5.0))
    table = phases(load([tmp_path]))
    assert table.select("series", "span", "n", "median_s", "low_s", "high_s").rows() == [
        ("pfs (emulated), in place", "provision", 3, 1.0, None, None),
        ("pfs (emulated), in place", "run", 3, 20.0, 10.0, 30.0),
        ("pfs (emulated), in place", "all", 3, 21.0, 11.0, 31.0),
        ("gfarm, staged in before", "provision", 1, 2.0, None, None),
        ("gfarm, staged in before", "run", 1, 5.0, None, None),
        ("gfarm, staged in before", "all", 1, 7.0, None, None),
    ]


def test_the_page_shows_a_column_per_span_and_a_row_per_point(make: Make, tmp_path: Path) -> None:
    make("pfs", 1, spans=spans(1.0, 10.0))
    make("pfs", 2, spans=(Span("run", 100.0, 6.0),))
    tables = load([tmp_path])
    page = as_html(phases(tables), tables)
    assert re.findall(r'<th class="(\w+)">', page) == ["provision", "run", "all"]
    rows = re.findall(r"<tr><td>(.*?)</tr>", page)
    assert len(rows) == 2
    assert "<b>10.0</b><span>[no interval]" in rows[0]
    assert '<td class="provision">-</td>' in rows[1]


def test_failed_and_skipped_cells_are_told_and_not_counted(make: Make, tmp_path: Path) -> None:
    make("pfs")
    make("pfs", repeat=2, status="failed", reason="<b>died</b> & gone", spans=spans(900.0, 1.0))
    tables = load([tmp_path])
    table = phases(tables)
    assert table["n"].unique().to_list() == [1]
    assert table.filter(pl.col("median_s") > 100).is_empty()
    page = as_html(table, tables)
    assert "&lt;b&gt;died&lt;/b&gt; &amp; gone" in page


def test_the_page_of_an_experiment_without_any_result(make: Make, tmp_path: Path) -> None:
    make("pfs", status="failed", reason="gfmd died")
    tables = load([tmp_path])
    assert "gfmd died" in as_html(phases(tables), tables)
