"""Sawada and Tatebe: I/O performance of distributed burst buffers. Figures 1 to 3: Montage."""

import polars as pl

from analysis.distribution import Scales, nonzero, panels, per_run, pooled, shared
from analysis.references import printed
from analysis.registry import Drawing, figure
from analysis.scaling import against_nodes
from analysis.series import labelled, look, metric
from analysis.tables import Tables
from analysis.words import Note, absent, conditions, count, issues

MONTAGE = pl.col("workload") == "montage"
BURST_BUFFERS = ("beeond", "gfarm", "provided")  # shared ones; the paper's own comes first
PARALLEL_FILE_SYSTEMS = ("pfs",)
POINT = ["dataset", "parameters", "nodes"]  # what two histograms must have in common


@figure("sawada", 1, title="Montage: workflow time against nodes")
def workflow_time(tables: Tables) -> Drawing:
    """Time of the whole workflow [s] against nodes, one line per storage."""
    montage = tables.where(MONTAGE)
    return against_nodes(
        montage.cells,
        metric(montage, "workflow_time"),
        title="Montage: workflow time against nodes",
        measure="workflow time [s]",
        notes=printed("sawada", 1),
    )


@figure("sawada", 2, title="Montage: run time of each command on the burst buffer")
def commands_on_burst_buffer(tables: Tables) -> Drawing:
    """Histogram of the run time [s] of each Montage command on the burst buffer."""
    return _commands(tables, 2, 0, "burst buffer", BURST_BUFFERS)


@figure("sawada", 3, title="Montage: run time of each command on the parallel file system")
def commands_on_pfs(tables: Tables) -> Drawing:
    """Histogram of the run time [s] of each Montage command on the parallel file system."""
    return _commands(tables, 3, 1, "parallel file system", PARALLEL_FILE_SYSTEMS)


def _commands(
    tables: Tables, number: int, side: int, kind: str, storages: tuple[str, ...]
) -> Drawing:
    montage = tables.where(MONTAGE)
    pair = _compared(montage)
    histograms = [per_run(shown.operations) for shown in pair]
    shown, scales = pair[side], shared(histograms, _order(pair))
    cells = labelled(shown.cells)
    if cells.is_empty():
        mine = montage.where(pl.col("storage").is_in(storages)).cells
        where = f"no run on a {kind} ({', '.join(storages)}) came to a good end"
        scales = Scales((), scales.edges_s, {})
        notes = absent(mine)
    else:
        where = f"{cells['series'][0]} · {count(cells['nodes'][0], 'node')} · {pooled(len(cells))}"
        notes = [*issues(cells), *conditions(cells), *nonzero(histograms[side])]
    return panels(
        histograms[side],
        scales,
        title=f"Montage: run time of each command on the {kind}",
        subtitle=where,
        colour=look(cells["storage"][0] if len(cells) else "").colour,
        notes=[*_note_on_comparison(pair), *notes, *printed("sawada", number)],
    )


def _compared(montage: Tables) -> tuple[Tables, Tables]:
    """The runs of figures 2 and 3: at the largest node count at which both have any.

    Where they have none in common, each at its own largest node count. An empty one: no run.
    """
    timed = montage.ok().where(
        pl.col("record").is_in(montage.operations["record"].unique().to_list())
    )
    both = [
        timed.where(pl.col("storage").is_in(storages))
        for storages in (BURST_BUFFERS, PARALLEL_FILE_SYSTEMS)
    ]
    points = both[0].cells.select(POINT).join(both[1].cells.select(POINT), on=POINT).unique()
    if not points.is_empty():
        best = points.sort(["nodes", "dataset", "parameters"], descending=[True, False, False])
        both = [_at(side, best.row(0)) for side in both]
    return _one_series(both[0], BURST_BUFFERS), _one_series(both[1], PARALLEL_FILE_SYSTEMS)


def _at(side: Tables, point: tuple[str, str, int]) -> Tables:
    return side.where(pl.all_horizontal(pl.col(n) == v for n, v in zip(POINT, point, strict=True)))


def _one_series(side: Tables, preferred: tuple[str, ...]) -> Tables:
    """The first storage in order of preference, its largest node count, one staging of it."""
    rank = pl.col("storage").replace_strict({n: i for i, n in enumerate(preferred)}, default=99)
    keys = ["storage", "staging", "storage_emulated", *POINT]
    best = side.cells.select(rank.alias("rank"), *keys).unique()
    best = best.sort(["rank", "nodes", *keys], descending=[False, True, *[False] * len(keys)])
    if best.is_empty():
        return side
    chosen = best.drop("rank").row(0, named=True)
    return side.where(pl.all_horizontal(pl.col(n).eq_missing(v) for n, v in chosen.items()))


def _order(pair: tuple[Tables, Tables]) -> list[str]:
    """Commands of both figures in the order in which the workflow first starts them."""
    starts = pl.concat([side.operations for side in pair]).with_columns(
        after=pl.col("start_s") - pl.col("start_s").min().over("record")
    )
    first = starts.group_by("operation").agg(pl.col("after").min()).sort("after", "operation")
    return first["operation"].to_list()


def _note_on_comparison(pair: tuple[Tables, Tables]) -> list[Note]:
    """Whether figures 2 and 3 were taken under the same conditions."""
    points = [side.cells.select(POINT).unique() for side in pair]
    if any(point.is_empty() for point in points):
        return []
    if points[0].equals(points[1]):
        nodes = count(points[0]["nodes"][0], "node")
        told = f"figures 2 and 3 share data set, node count ({nodes}, the largest both have), axes."
    else:
        told = "figures 2 and 3 differ in data set, node count or parameters: compare with care."
    return [Note("Compare", told)]
