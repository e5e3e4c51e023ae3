"""A measure against the number of nodes, one line per series, with its numbers underneath."""

import math
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from analysis.page import GREY, NOTE_PT, TEXT_PT, Page, text_width
from analysis.registry import Drawing
from analysis.series import labelled, look, medians
from analysis.words import Note, absent, conditions, interval, issues, seconds

LEFT, RIGHT, COLUMN, ROW, PLOT = 0.95, 2.75, 1.2, 0.36, 3.6
DODGE = 0.07  # between series at one node count, in doublings of nodes
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))  # series of one storage
Dashes = str | tuple[int, tuple[float, ...]]


def against_nodes(
    cells: pl.DataFrame, runs: pl.DataFrame, *, title: str, measure: str, notes: list[Note]
) -> Drawing:
    """Draw ``value`` [s] of ``runs`` against nodes: medians, intervals, single runs, numbers.

    ``cells`` are all cells of the figure, whatever their status: those without a result are
    listed in the notes. ``measure`` names the vertical axis, with its unit.
    """
    cells = labelled(cells)
    runs = runs.join(cells.select("record", "series"), on="record", maintain_order="right")
    points = medians(runs, ["series", "storage", "nodes"])
    rows = cells["series"].unique(maintain_order=True).to_list()
    nodes = sorted(cells["nodes"].unique())
    looks = dict(cells.select("series", "storage").iter_rows())
    dashes = _dashes(rows, looks)
    right = max([RIGHT, *(text_width(series, TEXT_PT) + 0.9 for series in rows)])
    across = max(5.3, COLUMN * len(nodes))
    page = Page(
        title,
        "Median of the runs at each number of nodes; lower is better.",
        [*absent(cells), *issues(cells), *conditions(cells), *notes],
        width=LEFT + across + right,
        body_height=0.2 + PLOT + 0.85 + ROW * len(rows),
    )
    bottom = 0.85 + ROW * len(rows)
    axes = page.axes(LEFT, bottom, across, PLOT)
    for i, series in enumerate(rows):
        shift = (i - (len(rows) - 1) / 2) * DODGE
        _line(
            axes,
            points.filter(pl.col("series") == series),
            runs.filter(pl.col("series") == series),
            looks[series],
            dashes[series],
            shift,
        )
    _scales(axes, nodes, measure, empty=points.is_empty())
    _key(axes, rows, looks, dashes, bool((points["n_with_issues"] > 0).any()))
    _numbers(axes, cells, points, rows, looks, dashes)
    return Drawing(page.figure, _data(cells, runs, points))


def _dashes(rows: list[str], looks: dict[str, str]) -> dict[str, Dashes]:
    """Series of one storage have its colour and marker; their lines tell them apart."""
    seen: dict[str, int] = {}
    dashes: dict[str, Dashes] = {}
    for series in rows:
        number = seen[looks[series]] = seen.get(looks[series], -1) + 1
        dashes[series] = DASHES[number % len(DASHES)]
    return dashes


def _line(
    axes: Axes,
    points: pl.DataFrame,
    runs: pl.DataFrame,
    storage: str,
    dashes: Dashes,
    shift: float,
) -> None:
    colour, marker = look(storage).colour, look(storage).marker
    single = runs["nodes"].log(2) + shift + DODGE / 2.5
    axes.plot(single, runs["value"], "o", ms=4.5, mew=0, color=colour, alpha=0.35, zorder=2)
    x = points["nodes"].log(2) + shift
    axes.plot(x, points["median"], ls=dashes, color=colour, lw=1.8, zorder=3)
    for at, row in zip(x, points.iter_rows(named=True), strict=True):
        if row["low"] is not None:
            ends = [[row["median"] - row["low"]], [row["high"] - row["median"]]]
            axes.errorbar(at, row["median"], ends, fmt="none", color=colour, capsize=4, lw=1.4)
        face = "white" if row["n_with_issues"] else colour
        axes.plot(at, row["median"], marker, ms=7, mew=1.8, mec=colour, mfc=face, zorder=4)


def _scales(axes: Axes, nodes: list[int], measure: str, *, empty: bool) -> None:
    doublings = [math.log2(n) for n in nodes]
    axes.set_xlim(min(doublings, default=0) - 0.5, max(doublings, default=0) + 0.5)
    axes.set_xticks(doublings, [str(n) for n in nodes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("nodes", labelpad=4)
    axes.set_ylabel(measure)
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, 1 if empty else axes.get_ylim()[1] * 1.08)
    if empty:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no run came to a good end", ha="center", transform=axes.transAxes)


def _key(
    axes: Axes,
    rows: list[str],
    looks: dict[str, str],
    dashes: dict[str, Dashes],
    open_ones: bool,
) -> None:
    kinds = [(series, look(looks[series]), dashes[series]) for series in rows]
    handles = [
        Line2D([], [], color=one.colour, marker=one.marker, ms=7, ls=line, label=series)
        for series, one, line in kinds
    ]
    plain: dict[str, Any] = {"color": GREY, "lw": 0}
    handles += [
        Line2D([], [], **plain, label=""),
        Line2D([], [], **plain, marker="o", ms=8, label="median"),
        Line2D([], [], **plain, marker="|", ms=14, mew=1.4, label="95 % bootstrap interval"),
        Line2D([], [], **plain, marker="o", ms=4.5, alpha=0.5, label="one run"),
    ]
    if open_ones:
        hollow: dict[str, Any] = {"marker": "o", "ms": 8, "mfc": "white", "mew": 1.8}
        handles.append(Line2D([], [], **plain, **hollow, label="open: runs have issues (below)"))
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.02, 1.02),
        fontsize=TEXT_PT,
        borderaxespad=0,
        labelspacing=0.55,
        handlelength=3.2,
    )


def _numbers(
    axes: Axes,
    cells: pl.DataFrame,
    points: pl.DataFrame,
    rows: list[str],
    looks: dict[str, str],
    dashes: dict[str, Dashes],
) -> None:
    """The numbers of each series under the axis, in the column of their node count."""
    drawn = {(row["series"], row["nodes"]): row for row in points.iter_rows(named=True)}
    states = {(row["series"], row["nodes"]): row["status"] for row in cells.iter_rows(named=True)}
    where: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center"}
    where |= {"va": "center", "clip_on": False}
    for i, series in enumerate(rows):
        y = -(0.72 + ROW * i) / PLOT
        for n in sorted(cells["nodes"].unique()):
            x, row = math.log2(n), drawn.get((series, n))
            if row:
                told = f"{interval(row['low'], row['high'])} n = {row['n']}"
                median = f"{seconds(row['median'])} s"
                axes.text(x, y, median, fontsize=NOTE_PT, weight="bold", **where)
                axes.text(x, y - 0.16 / PLOT, told, fontsize=7.5, color=GREY, **where)
            else:
                state = states.get((series, n), "-")
                axes.text(x, y - 0.08 / PLOT, state, fontsize=NOTE_PT, color=GREY, **where)
        style = look(looks[series])
        place: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        at = [y - 0.08 / PLOT] * 3
        axes.plot([-0.12, -0.095, -0.07], at, ls=dashes[series], color=style.colour, **place)
        axes.plot(-0.095, at[0], style.marker, ms=7, color=style.colour, **place)
    key = "median\n[95 % interval] number of runs"
    axes.text(
        1.02, -0.8 / PLOT, key, transform=axes.transAxes, fontsize=NOTE_PT, color=GREY, va="center"
    )


def _data(cells: pl.DataFrame, runs: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """Everything on the figure: medians, the runs behind them, and the cells without a result."""
    common = ["series", "storage", "nodes"]
    single = runs.select(
        pl.lit("run").alias("kind"),
        *common,
        "repeat",
        pl.col("value").alias("value_s"),
        pl.col("issues").list.join("; "),
        "record",
    )
    middle = points.select(
        pl.lit("median").alias("kind"),
        *common,
        pl.col("median").alias("value_s"),
        pl.col("low").alias("low_s"),
        pl.col("high").alias("high_s"),
        "n",
        "n_with_issues",
    )
    gone = cells.filter(pl.col("status") != "ok").select(
        pl.col("status").alias("kind"), *common, "repeat", "reason", "record"
    )
    table = pl.concat([middle, single, gone], how="diagonal")
    return table.select(
        "kind",
        *common,
        "repeat",
        "value_s",
        "low_s",
        "high_s",
        "n",
        "n_with_issues",
        "issues",
        "reason",
        "record",
    )
