"""Series: the runs that one line, or one histogram, stands for; and how a series is named."""

from dataclasses import dataclass

import polars as pl

from analysis.statistics import Median
from analysis.tables import Tables

IN_WORDS = {"none": "in place", "eager": "staged in before", "lazy": "prefetched"}


@dataclass(frozen=True, slots=True)
class Look:
    """Colour and marker of a storage, the same on every figure."""

    colour: str
    marker: str


# Okabe and Ito's palette: told apart by readers with any colour vision
LOOKS = {
    "pfs": Look("#0072B2", "o"),
    "nodelocal": Look("#E69F00", "s"),
    "gfarm": Look("#009E73", "^"),
    "beeond": Look("#D55E00", "D"),
    "provided": Look("#CC79A7", "v"),
}
OTHER = Look("#666666", "P")


def look(storage: str) -> Look:
    """Colour and marker of a storage; grey for one that has none of its own yet."""
    return LOOKS.get(storage, OTHER)


def labelled(cells: pl.DataFrame) -> pl.DataFrame:
    """Cells with a column ``series``: storage, emulated or not, staging, and what else differs.

    Sorted so that the baseline comes first, as on every figure.
    Data set and parameters are named only where ``cells`` holds more than one of them.
    """
    staging = pl.col("staging").replace(IN_WORDS)
    extra = [pl.col(name) for name in ("dataset", "parameters") if cells[name].n_unique() > 1]
    # a cell that ended before its storage started can't tell; its neighbours can
    known = pl.col("storage_emulated")
    emulated = known.fill_null(known.max().over("storage"))
    mark = pl.when(emulated).then(pl.lit(" (emulated)")).otherwise(pl.lit(""))
    label = pl.concat_str(pl.col("storage") + mark, staging, *extra, separator=", ")
    rank = pl.col("storage").replace_strict({n: i for i, n in enumerate(LOOKS)}, default=len(LOOKS))
    return cells.with_columns(series=label).sort(rank, "storage", "series", "nodes", "repeat")


def parameter(name: str, default: str) -> pl.Expr:
    """One of the parameters that ``parameters`` lists as name=value,name=value."""
    found = pl.col("parameters").str.extract(rf"(?:^|,){name}=([^,]*)")
    return found.fill_null(default)


def metric(tables: Tables, name: str) -> pl.DataFrame:
    """Cells that ran to a good end with ``value`` and ``unit`` of one of their metrics."""
    values = tables.metrics.filter(pl.col("name") == name).select("record", "value", "unit")
    return tables.ok().cells.join(values, on="record")


def medians(runs: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """One row per group: n, median, low, high (null: no interval), and runs with issues.

    ``runs`` has the columns ``by``, ``value`` and ``issues``; the order of groups is kept.
    """
    statistics = pl.Schema(
        {
            "n": pl.Int64(),
            "n_with_issues": pl.Int64(),
            "median": pl.Float64(),
            "low": pl.Float64(),
            "high": pl.Float64(),
        }
    )
    rows = []
    for key, group in runs.group_by(by, maintain_order=True):
        median = Median.of(group["value"])
        flawed = int((group["issues"].list.len() > 0).sum())
        rows.append((*key, median.n, flawed, median.median, median.low, median.high))
    schema = pl.Schema([*((name, runs.schema[name]) for name in by), *statistics.items()])
    return pl.DataFrame(rows, schema=schema, orient="row")
