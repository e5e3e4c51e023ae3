"""What a workload reads and writes, from its traced runs: histograms for any workload.

The measures of figure 8 of Sawada and Tatebe, which is of Hadoop's tasks.
"""

from collections.abc import Sequence

import polars as pl

from analysis.registry import Drawing, figure
from analysis.series import labelled
from analysis.sizes import DIRECTIONS, binary, histograms, panels
from analysis.tables import Tables
from analysis.words import Note, absent, conditions, count, issues

STORED = pl.col("place").is_in(["work", "dataset", "local"])
POINT = ["workload", "series", "nodes"]
COLUMNS = {direction: f"{direction}_bytes" for direction in DIRECTIONS}


@figure("trace", 1, title="Traced workloads: bytes read and written of each file", of_traced=True)
def per_file(tables: Tables) -> Drawing:
    """Number of files against the bytes read from, and written to, each in a whole run."""
    shared = pl.col("place").ne("local") & pl.col("storage").ne("nodelocal")
    host = pl.when(shared).then(pl.lit("")).otherwise(pl.col("host")).alias("on")
    return _summed(
        tables, ["place", "path", host], "bytes of each file", "files", "bytes of one file"
    )


@figure(
    "trace", 2, title="Traced workloads: bytes read and written by each process", of_traced=True
)
def per_process(tables: Tables) -> Drawing:
    """Number of processes against the bytes that each reads and writes in all."""
    by = ["host", "process"]
    return _summed(tables, by, "bytes of each process", "processes", "bytes of one process")


@figure("trace", 3, title="Traced workloads: sizes of reads and writes", of_traced=True)
def requests(tables: Tables) -> Drawing:
    """Number of system calls against the bytes that each moved."""
    runs = _runs(tables)
    calls = tables.requests.filter(STORED).join(runs, on="record", maintain_order="right")
    sizes = calls.select(
        "runs_of", "storage", "runs", "direction", "size_bytes", pl.col("calls").alias("count")
    )
    ends = int(sizes.filter(size_bytes=0)["count"].sum())
    at_end = [Note("Left out", f"{count(ends, 'call')} that moved nothing.")] if ends else []
    return _drawing(
        tables, sizes, "sizes of reads and writes", "calls", "bytes of one call", at_end
    )


def _summed(
    tables: Tables, by: Sequence[str | pl.Expr], what: str, things: str, across: str
) -> Drawing:
    """One thing is what has the same ``by`` in one run."""
    moved = tables.transfers.filter(STORED).join(_runs(tables), on="record", maintain_order="right")
    each = moved.group_by("runs_of", "storage", "runs", "record", *by, maintain_order=True)
    parts = [
        each.agg(pl.col(column).sum().alias("size_bytes")).select(
            "runs_of", "storage", "runs", "size_bytes", direction=pl.lit(direction), count=pl.lit(1)
        )
        for direction, column in COLUMNS.items()
    ]
    return _drawing(tables, pl.concat(parts), what, things, across, [])


def _drawing(
    tables: Tables, sizes: pl.DataFrame, what: str, things: str, across: str, notes: list[Note]
) -> Drawing:
    cells = tables.cells
    return panels(
        histograms(sizes),
        title=f"Traced workloads: {what}",
        subtitle="What system calls read from and wrote to the storage, the data set and "
        "node-local directories.",
        things=things,
        across=across,
        notes=[*notes, *_elsewhere(tables), *absent(cells), *issues(cells), *conditions(cells)],
    )


def _runs(tables: Tables) -> pl.DataFrame:
    """Runs that ended well: record, storage, and the name and number of all runs like it."""
    runs = labelled(tables.ok().cells).with_columns(runs=pl.col("record").n_unique().over(POINT))
    nodes = pl.when(pl.col("nodes") == 1).then(pl.lit(" node")).otherwise(pl.lit(" nodes"))
    pooled = pl.when(pl.col("runs") == 1).then(pl.lit(" run")).otherwise(pl.lit(" runs pooled"))
    workload = pl.when(pl.col("workload") == "").then(pl.lit("workload")).otherwise("workload")
    name = pl.concat_str(
        *(workload, pl.lit(" · "), "series", pl.lit(" · "), "nodes", nodes),
        *(pl.lit(" · "), "runs", pooled),
    )
    return runs.select("record", "storage", "runs", runs_of=name)


def _elsewhere(tables: Tables) -> list[Note]:
    """What was read and written outside of what the figure is about."""
    rest = tables.ok().transfers.filter(~STORED)
    if rest.is_empty():
        return []
    read, written = (binary(float(rest[column].sum())) for column in COLUMNS.values())
    told = f"{read} read and {written} written of programs, libraries, logs and other files."
    return [Note("Elsewhere", told)]
