"""Sawada and Tatebe: I/O performance of distributed burst buffers. Figures 5 to 8: TeraSort."""

from typing import Any

import polars as pl

from analysis.references import printed
from analysis.registry import Drawing, figure
from analysis.scaling import against_nodes
from analysis.series import labelled, metric
from analysis.tables import Tables
from analysis.tasks import draw
from analysis.words import Note, absent, conditions, count, issues

TERASORT = pl.col("workload") == "terasort"
BURST_BUFFERS = ("beeond", "gfarm", "provided")  # shared ones; the paper's own comes first
ROW_BYTES = 100
PAPER_TIMES = 2.05  # 40955 MB of 20 GB
POINT = ["storage", "staging", "storage_emulated", "dataset", "parameters", "nodes"]


@figure("sawada", 5, title="TeraSort: time of TeraGen against nodes")
def teragen(tables: Tables) -> Drawing:
    """Time of TeraGen [s] against nodes, one line per storage."""
    return _program(tables, 5, "TeraGen")


@figure("sawada", 6, title="TeraSort: time of TeraSort against nodes")
def terasort(tables: Tables) -> Drawing:
    """Time of TeraSort [s] against nodes, one line per storage."""
    return _program(tables, 6, "TeraSort")


@figure("sawada", 7, title="TeraSort: time of TeraValidate against nodes")
def teravalidate(tables: Tables) -> Drawing:
    """Time of TeraValidate [s] against nodes, one line per storage."""
    return _program(tables, 7, "TeraValidate")


@figure("sawada", 8, title="TeraSort: bytes that each task read and wrote")
def task_sizes(tables: Tables) -> Drawing:
    """Histogram of the bytes that each task of a whole run read, and wrote."""
    all_runs = tables.where(TERASORT)
    shown = _on_burst_buffer(all_runs)
    cells = labelled(shown.cells)
    where = f"no run on a burst buffer ({', '.join(BURST_BUFFERS)}) came to a good end"
    if len(cells):
        runs = count(len(cells), "run") + (" pooled" if len(cells) > 1 else "")
        where = f"{cells['series'][0]} · {count(cells['nodes'][0], 'node')} · {runs}"
    notes = [*_data(shown), *issues(cells), *conditions(cells)]
    if cells.is_empty():
        notes = absent(all_runs.where(pl.col("storage").is_in(BURST_BUFFERS)).cells)
    return draw(
        shown.operations,
        title="TeraSort: bytes that each task read and wrote",
        subtitle=where,
        notes=[*notes, *printed("sawada", 8)],
    )


def _program(tables: Tables, number: int, program: str) -> Drawing:
    runs = tables.where(TERASORT)
    return against_nodes(
        runs.cells,
        metric(runs, f"{program.lower()}_time"),
        title=f"TeraSort: time of {program} against nodes",
        measure=f"time of {program} [s]",
        notes=[*_data(runs), *printed("sawada", number)],
    )


def _data(runs: Tables) -> list[Note]:
    """How much was sorted, and how much of it the one reduce wrote, beside the paper's."""
    facts = runs.ok().cells["workload_facts"].explode().drop_nulls()
    rows = {int(fact.split()[1]) for fact in facts if fact.startswith("rows ")}
    if not rows:
        return []
    told = f"{', '.join(f'{n * ROW_BYTES / 1e6:,g} MB' for n in sorted(rows))} sorted here"
    reduces = runs.operations.filter(pl.col("operation") == "TeraSort-reduce")["written_bytes"]
    if len(rows) == 1 and len(reduces):
        times = sum(reduces) / len(reduces) / (max(rows) * ROW_BYTES)
        told += f"; the reduce wrote {times:.2f} times as much, the paper's {PAPER_TIMES} times"
    return [Note("Data", f"{told}.")]


def _on_burst_buffer(tables: Tables) -> Tables:
    """Runs of one cell: the first burst buffer that has any, its largest number of nodes."""
    good = tables.ok().where(pl.col("storage").is_in(BURST_BUFFERS))
    if good.cells.is_empty():
        return good
    rank = pl.col("storage").replace_strict({n: i for i, n in enumerate(BURST_BUFFERS)})
    points = good.cells.select(POINT).unique()
    order = [rank, "nodes", *POINT]
    best = points.sort(order, descending=[False, True, *[False] * len(POINT)])
    chosen: dict[str, Any] = best.row(0, named=True)
    return good.where(pl.all_horizontal(pl.col(n).eq_missing(v) for n, v in chosen.items()))
