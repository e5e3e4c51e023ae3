"""Times of input pipelines against a number: of processes, or of minibatches. One line each."""

from typing import Any, NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.page import GREY, NOTE_PT, TEXT_PT, Page
from analysis.series import Look, medians
from analysis.words import Note, interval, seconds

LEFT, RIGHT, PLOT = 0.95, 3.3, 3.4  # inches: of the plot from the page's edges, its height
ACROSS, COLUMN, ROW = 5.6, 1.15, 0.36


class Mode(NamedTuple):
    """How a pipeline is named and drawn on every figure."""

    name: str
    look: Look


# Colours of the storages that the first two read from, and two that are told apart from them.
MODES = {
    "ssd": Mode("ssd: staged before, read from node-local", Look("#E69F00", "s")),
    "direct": Mode("direct: read from the PFS", Look("#0072B2", "o")),
    "paper3": Mode("paper3: the paper's three stages", Look("#D55E00", "D")),
    "lazy": Mode("lazy: prefetched by burstio", Look("#009E73", "^")),
}
# A storage on which trainings are compared too.
SERIES = {**MODES, "gfarm": Mode("direct on gfarm: staged before", Look("#CC79A7", "v"))}


def against_number(
    runs: pl.DataFrame, across: str, *, title: str, subtitle: str, measure: str, notes: list[Note]
) -> tuple[Page, pl.DataFrame]:
    """Medians of ``value`` [s] against the column ``number``, with intervals and single runs.

    ``runs`` has ``mode``, ``number``, ``value`` and ``issues``. Returns the page and its numbers.
    """
    points = medians(runs.sort("number"), ["mode", "number"])
    modes = [mode for mode in SERIES if mode in set(points["mode"])]
    numbers = sorted(points["number"].unique())
    width = max(ACROSS, COLUMN * len(numbers))
    bottom = 0.85 + ROW * len(modes)
    page = Page(title, subtitle, notes, width=LEFT + width + RIGHT, body_height=bottom + PLOT + 0.2)
    axes = page.axes(LEFT, bottom, width, PLOT)
    for place, mode in enumerate(modes):
        shift = (place - (len(modes) - 1) / 2) * 0.07
        _line(axes, mode, numbers, runs, points, shift)
    axes.set_xticks(range(len(numbers)), [str(number) for number in numbers])
    axes.set_xlim(-0.5, max(1, len(numbers)) - 0.5)
    axes.set_xlabel(across, labelpad=4)
    axes.grid(axis="x", visible=False)
    _finish(axes, modes, measure, bool((points["n_with_issues"] > 0).any()), single=True)
    _numbers(axes, modes, numbers, points)
    return page, points


def against_minibatches(
    loaded: pl.DataFrame, *, title: str, subtitle: str, measure: str, notes: list[Note]
) -> tuple[Page, pl.DataFrame]:
    """Median elapsed time after each minibatch, and the range of the runs as a band.

    ``loaded`` has ``mode``, ``minibatch`` (from 1) and ``elapsed_s``.
    """
    by = loaded.group_by("mode", "minibatch").agg(
        pl.col("elapsed_s").median().alias("median"),
        pl.col("elapsed_s").min().alias("least"),
        pl.col("elapsed_s").max().alias("most"),
        pl.len().alias("n"),
    )
    points = by.sort("mode", "minibatch")
    page = Page(title, subtitle, notes, width=LEFT + ACROSS + RIGHT, body_height=PLOT + 0.85)
    axes = page.axes(LEFT, 0.65, ACROSS, PLOT)
    modes = [mode for mode in SERIES if mode in set(points["mode"])]
    for mode in modes:
        line, look = points.filter(pl.col("mode") == mode), SERIES[mode].look
        x = line["minibatch"]
        axes.fill_between(x, line["least"], line["most"], color=look.colour, alpha=0.2, lw=0)
        every = max(1, len(x) // 10)
        style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markevery": every}
        axes.plot(x, line["median"], lw=1.8, ms=6, **style)
    axes.set_xlabel("minibatches loaded", labelpad=4)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(left=0)
    _finish(axes, modes, measure, False, single=False)
    return page, points


def table(
    heads: list[str], rows: list[list[str]], looks: list[Look], *, title: str, subtitle: str,
    notes: list[Note],
) -> Page:  # fmt: skip
    """Rows of text, the first column to the left with a marker, the others to the right."""
    widths = [_width([head, *column]) for head, *column in zip(heads, *rows, strict=True)]
    width = max(7.5, 0.9 + sum(widths) + 0.3 * len(widths))
    page = Page(title, subtitle, notes, width=width, body_height=0.65 + 0.3 * len(rows))
    axes = page.axes(0.3, 0.05, width - 0.6, page.body_height - 0.1)
    axes.set_axis_off()
    axes.set_xlim(0, width - 0.6)
    axes.set_ylim(page.body_height - 0.1, 0)
    at = 0.3
    for column, head in enumerate(heads):
        right = column > 0
        x = at + widths[column] if right else at
        place: dict[str, Any] = {"va": "center", "ha": "right" if right else "left"}
        axes.text(x, 0.15, head, fontsize=TEXT_PT, weight="bold", **place)
        for line, row in enumerate(rows):
            colour = GREY if row[column] == "-" else "black"
            axes.text(x, 0.5 + 0.3 * line, row[column], fontsize=TEXT_PT, color=colour, **place)
        at += widths[column] + 0.3
    for line, look in enumerate(looks):
        axes.plot(0.1, 0.5 + 0.3 * line, look.marker, ms=7, color=look.colour)
    return page


def _width(texts: list[str]) -> float:
    from analysis.page import text_width

    return max(text_width(text, TEXT_PT) for text in texts) * 1.08  # the head is bold


def _line(
    axes: Axes,
    mode: str,
    numbers: list[int],
    runs: pl.DataFrame,
    points: pl.DataFrame,
    shift: float,
) -> None:
    look = SERIES[mode].look
    places = {number: place + shift for place, number in enumerate(numbers)}
    own = runs.filter(pl.col("mode") == mode)
    single = [places[number] + 0.03 for number in own["number"]]
    axes.plot(single, own["value"], "o", ms=4.5, mew=0, color=look.colour, alpha=0.35, zorder=2)
    line = points.filter(pl.col("mode") == mode).sort("number")
    x = [places[number] for number in line["number"]]
    axes.plot(x, line["median"], "-", color=look.colour, lw=1.8, zorder=3)
    for at, row in zip(x, line.iter_rows(named=True), strict=True):
        if row["low"] is not None:
            ends = [[row["median"] - row["low"]], [row["high"] - row["median"]]]
            axes.errorbar(at, row["median"], ends, fmt="none", color=look.colour, capsize=4, lw=1.4)
        face = "white" if row["n_with_issues"] else look.colour
        style: dict[str, Any] = {"mec": look.colour, "mfc": face, "mew": 1.8}
        axes.plot(at, row["median"], look.marker, ms=7, zorder=4, **style)


def _finish(axes: Axes, modes: list[str], measure: str, issues: bool, *, single: bool) -> None:
    axes.set_ylabel(measure)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.04 if modes else 1)
    if not modes:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no run came to a good end", ha="center", transform=axes.transAxes)
    handles: list[Any] = []
    for mode in modes:
        look = SERIES[mode].look
        style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ms": 7}
        handles.append(Line2D([], [], label=SERIES[mode].name, **style))
    grey: dict[str, Any] = {"color": GREY, "lw": 0}
    if single:
        handles.append(Line2D([], [], **grey, marker="o", ms=7, label="median"))
        interval_: dict[str, Any] = {"marker": "|", "ms": 13, "mew": 1.4}
        handles.append(Line2D([], [], **grey, **interval_, label="95 % bootstrap interval"))
        handles.append(Line2D([], [], **grey, marker="o", ms=4.5, alpha=0.5, label="one run"))
    else:
        handles.append(Line2D([], [], color=GREY, lw=7, alpha=0.25, label="least to most of runs"))
    if issues:
        hollow: dict[str, Any] = {"marker": "o", "ms": 7, "mfc": "white", "mew": 1.8}
        handles.append(Line2D([], [], **grey, **hollow, label="open: runs have issues (below)"))
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.02)}
    axes.legend(handles=handles, fontsize=TEXT_PT, borderaxespad=0, labelspacing=0.55, **place)


def _numbers(axes: Axes, modes: list[str], numbers: list[int], points: pl.DataFrame) -> None:
    """Medians and intervals under the axis, in the column of their number."""
    drawn = {(row["mode"], row["number"]): row for row in points.iter_rows(named=True)}
    where: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center"}
    where |= {"va": "center", "clip_on": False}
    for line, mode in enumerate(modes):
        y = -(0.72 + ROW * line) / PLOT
        for x, number in enumerate(numbers):
            row = drawn.get((mode, number))
            if row is None:
                axes.text(x, y - 0.08 / PLOT, "-", fontsize=NOTE_PT, color=GREY, **where)
                continue
            told = f"{interval(row['low'], row['high'])} n = {row['n']}"
            axes.text(x, y, f"{seconds(row['median'])} s", fontsize=NOTE_PT, weight="bold", **where)
            axes.text(x, y - 0.16 / PLOT, told, fontsize=7.5, color=GREY, **where)
        look, place = SERIES[mode].look, {"transform": axes.transAxes, "clip_on": False}
        axes.plot(-0.09, y - 0.08 / PLOT, look.marker, ms=7, color=look.colour, **place)  # type: ignore[arg-type]
    key: dict[str, Any] = {"transform": axes.transAxes, "fontsize": NOTE_PT, "color": GREY}
    axes.text(1.02, -0.8 / PLOT, "median\n[95 % interval] number of runs", va="center", **key)
