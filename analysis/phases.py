"""The timing table: median time of each phase (span) of a cell, by series and node count."""

from html import escape
from typing import Any

import polars as pl

from analysis.series import labelled, look, medians
from analysis.tables import Tables
from analysis.words import absent, conditions, interval, issues, seconds

ALL = "all"  # the sum of a run's spans
ROW = ["workload", "series", "storage", "nodes"]

STYLE = """
body { font: 13px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #222; background: #fff;
       margin: 1.5rem; }
h1 { font-size: 1.25rem; margin: 0 0 .2rem; }
p { max-width: 60rem; color: #5f5f5f; margin: .3rem 0; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .35rem .4rem; text-align: right; border-bottom: 1px solid #d9d9d9;
         white-space: nowrap; vertical-align: top; }
th { font-weight: 600; }
thead th { border-bottom: 2px solid #5f5f5f; }
th:first-child, td:first-child { text-align: left; }
td.all, th.all { border-left: 1px solid #d9d9d9; }
td b { display: block; }
p b { color: #222; }
td span { color: #5f5f5f; font-size: .8em; }
i { display: inline-block; width: .8em; height: .8em; margin-right: .5em; border-radius: 2px; }
"""


def phases(tables: Tables) -> pl.DataFrame:
    """One row per workload, series, nodes and span: n, n_with_issues, median_s, low_s, high_s.

    Only cells that ran to a good end count. Spans come in the order in which a cell has them,
    then the sum of all of a run's spans, ``all``.
    """
    ran = tables.ok()
    cells = labelled(ran.cells).select("record", "workload", "series", "storage", "nodes", "issues")
    total = ran.spans.group_by("record").agg(pl.col("elapsed_s").sum())
    spans = pl.concat(
        [
            ran.spans.select("record", "name", "elapsed_s"),
            total.select("record", pl.lit(ALL).alias("name"), "elapsed_s"),
        ]
    )
    rank = {name: i for i, name in enumerate([*order(ran.spans), ALL])}
    spans = spans.sort(pl.col("name").replace_strict(rank, default=len(rank)))
    runs = cells.join(spans, on="record", maintain_order="left_right")
    runs = runs.rename({"elapsed_s": "value", "name": "span"})
    table = medians(runs, [*ROW, "span"])
    return table.rename({"median": "median_s", "low": "low_s", "high": "high_s"})


def order(spans: pl.DataFrame) -> list[str]:
    """Names of spans in the order in which cells go through them."""
    after = pl.col("start_s") - pl.col("start_s").min().over("record")
    first = spans.with_columns(after=after).group_by("name").agg(pl.col("after").median())
    return first.sort("after", "name")["name"].to_list()


def as_html(table: pl.DataFrame, tables: Tables) -> str:
    """The table as a page of its own, with what was skipped and the conditions below it."""
    names = [*order(tables.ok().spans), ALL]
    head = "".join(f'<th class="{escape(name)}">{escape(name)}</th>' for name in names)
    workloads = table.group_by("workload", maintain_order=True)
    body = "".join(_workload(group, names) for _, group in workloads)
    cells = tables.cells
    notes = [*absent(cells), *issues(cells), *conditions(cells)]
    below = "".join(f"<p><b>{note.about}</b> {escape(note.text)}</p>" for note in notes)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Phases of a cell</title>'
        f"<style>{STYLE}</style><h1>Time of each phase of a cell</h1>"
        "<p>Seconds: median, [95 % bootstrap interval] of n runs. "
        "No interval: fewer than three runs, or all equal.</p>"
        "<table><thead><tr><th>storage, staging</th><th>nodes</th><th>n</th>"
        f"{head}</tr></thead>{body}</table>{below}</html>\n"
    )


def _workload(table: pl.DataFrame, names: list[str]) -> str:
    """The part of the page on one workload."""
    title = f'<th colspan="{len(names) + 3}">{escape(table["workload"][0])}</th>'
    groups = table.group_by(ROW, maintain_order=True)
    rows = "".join(_row(group, names) for _, group in groups)
    return f"<tbody><tr>{title}</tr>{rows}</tbody>"


def _row(group: pl.DataFrame, names: list[str]) -> str:
    """A row of the page from the rows of one series and node count."""
    _, series, storage, nodes = group.select(ROW).row(0)
    of = {row["span"]: row for row in group.iter_rows(named=True)}
    swatch = f'<i style="background:{look(storage).colour}"></i>'
    n = of[ALL]["n"]
    cells = "".join(f'<td class="{escape(name)}">{_cell(of.get(name), n)}</td>' for name in names)
    return f"<tr><td>{swatch}{escape(series)}</td><td>{nodes}</td><td>{n}</td>{cells}</tr>"


def _cell(row: dict[str, Any] | None, n: int) -> str:
    if row is None:
        return "-"
    fewer = "" if row["n"] == n else f", n = {row['n']}"
    told = escape(f"{interval(row['low_s'], row['high_s'])}{fewer}")
    return f"<b>{escape(seconds(row['median_s']))}</b><span>{told}</span>"
