"""Data-parallel trainings: their cells, which of them are one series, and what is told of them."""

import polars as pl

from analysis.series import labelled, metric, parameter
from analysis.tables import Tables
from analysis.words import Note, absent, conditions, count, issues, trained
from burstlab.errors import ConfigurationError

TRAINING = pl.col("workload").is_in(["chainermn", "ddp"])
DEFAULTS = {"mode": "lazy", "batch": "32", "ranks": "4"}
# A figure compares pipelines: nothing else may differ in all of it, nor within one series.
EVERYWHERE, WITHIN = ("workload", "dataset"), ("storage", "staging", "parameters")


def trainings(tables: Tables) -> Tables:
    """All of them. Raises ConfigurationError where some that ran can't be compared."""
    chosen = tables.where(TRAINING)
    cells = named(chosen.ok())
    _check_alike(cells, EVERYWHERE, "trainings")
    for (mode, nodes), group in cells.group_by("mode", "nodes", maintain_order=True):
        _check_alike(group, WITHIN, f"{mode} on {count(int(str(nodes)), 'node')}")
    return chosen


def named(tables: Tables) -> pl.DataFrame:
    """Cells with their parameters; ``mode`` is the series, which ``direct`` on Gfarm is one of."""
    found = {name: parameter(name, default) for name, default in DEFAULTS.items()}
    gfarm = (pl.col("mode") == "direct") & (pl.col("storage") == "gfarm")
    series = pl.when(gfarm).then(pl.lit("gfarm")).otherwise(pl.col("mode"))
    return (
        tables.cells.with_columns(**found)
        .with_columns(pl.col("batch", "ranks").cast(pl.Int64))
        .with_columns(mode=series)
    )


def runs(chosen: Tables, name: str) -> pl.DataFrame:
    """Values of one metric, with ``mode``, ``batch`` and ``ranks``."""
    modes = named(chosen).select("record", "mode", "batch", "ranks")
    return metric(chosen, name).join(modes, on="record").sort("nodes")


def of(chosen: Tables, mode: str) -> Tables:
    """The cells of one series."""
    records = named(chosen).filter(pl.col("mode") == mode)["record"]
    return chosen.where(pl.col("record").is_in(records.to_list()))


def largest(chosen: Tables) -> Tables:
    """The cells on the most nodes that any run came to a good end on."""
    most = chosen.ok().cells["nodes"].max()
    return chosen.where(pl.col("nodes") == most) if most is not None else chosen


def where(chosen: Tables) -> str:
    """On how many nodes and ranks, in words."""
    kinds = named(chosen.ok()).select("nodes", "ranks").unique().sort("nodes", "ranks")
    told = [f"{count(n, 'node')}, {count(r, 'rank')} on each" for n, r in kinds.iter_rows()]
    return " or ".join(told) or "No run"


def notes(chosen: Tables) -> list[Note]:
    """Conditions and failures of the cells, and whose cache ``lazy`` filled."""
    cells = labelled(chosen.cells)
    told = [*trained(cells), *absent(cells), *issues(cells), *conditions(cells)]
    lazy = named(chosen.ok()).filter(pl.col("mode") == "lazy")["staging"].unique()
    whose = {"lazy": "all ranks of a node ask its one agent.", "none": "each rank has a cache."}
    return [*told, *(Note("lazy", whose[staging]) for staging in lazy if staging in whose)]


def staged(chosen: Tables) -> list[Note]:
    """By which method data came to where each series reads them."""
    cells = named(chosen.ok()).drop_nulls("staging_method")
    methods = cells.group_by("mode", "staging_method").len().sort("mode", "staging_method")
    told = [f"{mode}: {method}" for mode, method, _ in methods.iter_rows()]
    text = "method of staging (docs/how-to/stage-a-dataset.md), of which paper is the paper's own: "
    return [Note("Staged", f"{text}{', '.join(told)}.")] if told else []


def _check_alike(cells: pl.DataFrame, columns: tuple[str, ...], what: str) -> None:
    for column in columns:
        found = cells[column].unique().sort().to_list()
        if len(found) > 1:
            raise ConfigurationError(
                f"{what}: {column} is {' and '.join(found)}: a figure would take them for the "
                "same; give each a scale of its own"
            )
