"""Histograms of command run times, one panel per command, on a log axis of time."""

import math
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullFormatter

from analysis.page import GREY, INK, NOTE_PT, TEXT_PT, Page
from analysis.registry import Drawing
from analysis.statistics import LogHistogram, log_edge_s
from analysis.words import Note, count, seconds

COLUMNS, PANEL_WIDTH, PANEL_HEIGHT = 4, 1.95, 1.15
GAP_X, GAP_Y, LEFT, BOTTOM, HEAD = 0.42, 0.8, 0.75, 0.7, 0.85  # inches; HEAD holds the key


@dataclass(frozen=True, slots=True)
class Scales:
    """What figures that are to be compared share: the panels, and the axes of each."""

    operations: tuple[str, ...]
    edges_s: tuple[float, float]
    highest: dict[str, float]


def per_run(operations: pl.DataFrame) -> pl.DataFrame:
    """Histogram per operation as rows: operation, low_s, high_s, count, runs, n, median_s, …

    ``operations`` may come from several runs of one cell; ``runs`` says from how many.
    """
    runs = operations["record"].n_unique()
    rows = []
    for (name,), group in operations.group_by(["operation"], maintain_order=True):
        times = group["elapsed_s"]
        histogram = LogHistogram.of(times)
        edges = histogram.edges_s
        for low, high, height in zip(edges, edges[1:], histogram.counts, strict=False):
            rows.append(
                {
                    "operation": name,
                    "low_s": low,
                    "high_s": high,
                    "count": height,
                    "runs": runs,
                    "n": len(times),
                    "median_s": times.median(),
                    "quartile1_s": times.quantile(0.25, "linear"),
                    "quartile3_s": times.quantile(0.75, "linear"),
                    "nonzero_status": int((group["status"] != 0).sum()),
                }
            )
    return pl.DataFrame(rows, schema=DATA)


DATA = pl.Schema(
    {
        "operation": pl.String,
        "low_s": pl.Float64,
        "high_s": pl.Float64,
        "count": pl.Int64,
        "runs": pl.Int64,
        "n": pl.Int64,
        "median_s": pl.Float64,
        "quartile1_s": pl.Float64,
        "quartile3_s": pl.Float64,
        "nonzero_status": pl.Int64,
    }
)


def shared(histograms: list[pl.DataFrame], order: list[str]) -> Scales:
    """Scales on which all of ``histograms`` (as from per_run) can be drawn and compared."""
    both = pl.concat(histograms)
    highest = both.group_by("operation").agg((pl.col("count") / pl.col("runs")).max().alias("high"))
    low, high = both["low_s"].min(), both["high_s"].max()
    return Scales(
        tuple(order),
        (low, high) if isinstance(low, float) and isinstance(high, float) else (0.001, 1.0),
        dict(highest.iter_rows()),
    )


def panels(
    histogram: pl.DataFrame,
    scales: Scales,
    *,
    title: str,
    subtitle: str,
    colour: str,
    notes: list[Note],
) -> Drawing:
    """Draw one panel per operation; an operation without a run keeps its place, and says so."""
    rows = math.ceil(len(scales.operations) / COLUMNS)
    width = LEFT + COLUMNS * (PANEL_WIDTH + GAP_X) + 0.05
    body = HEAD + BOTTOM + rows * PANEL_HEIGHT + (rows - 1) * GAP_Y if rows else 0.2
    page = Page(title, subtitle, notes, width=width, body_height=body)
    top = body - HEAD
    for i, name in enumerate(scales.operations):
        row, column = divmod(i, COLUMNS)
        axes = page.axes(
            LEFT + column * (PANEL_WIDTH + GAP_X),
            top - row * (PANEL_HEIGHT + GAP_Y) - PANEL_HEIGHT,
            PANEL_WIDTH,
            PANEL_HEIGHT,
        )
        _panel(axes, name, histogram.filter(pl.col("operation") == name), scales, colour)
        axes.tick_params(labelsize=NOTE_PT)
        if column == 0:
            axes.set_ylabel("commands per run", fontsize=NOTE_PT)
        if i + COLUMNS >= len(scales.operations):
            axes.set_xlabel("run time of one command [s]", fontsize=NOTE_PT)
    if scales.operations:
        _key(page, top + HEAD, colour)
    return Drawing(page.figure, histogram)


def _key(page: Page, top: float, colour: str) -> None:
    page.figure.legend(
        handles=[
            Patch(color=colour, label="commands in a bin of 1/8 decade"),
            Line2D([], [], color=INK, lw=1.6, label="median"),
            Patch(color=INK, alpha=0.12, label="middle half of the commands"),
        ],
        loc="upper left",
        bbox_to_anchor=(0.3 / page.width - 0.005, (page.foot_height + top) / page.height),
        ncols=3,
        fontsize=TEXT_PT,
        borderaxespad=0,
        handlelength=1.4,
    )


def _panel(axes: Axes, name: str, histogram: pl.DataFrame, scales: Scales, colour: str) -> None:
    axes.set_xscale("log")
    axes.set_xlim(scales.edges_s[0] * log_edge_s(-1), scales.edges_s[1] * log_edge_s(1))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylim(0, 1.12 * scales.highest.get(name, 1))
    axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(name, loc="left", fontsize=TEXT_PT, weight="bold", pad=16)
    told = "no run"
    if not histogram.is_empty():
        row = histogram.row(0, named=True)
        axes.axvspan(row["quartile1_s"], row["quartile3_s"], color=INK, alpha=0.12, lw=0)
        axes.bar(
            histogram["low_s"],
            histogram["count"] / histogram["runs"],
            width=histogram["high_s"] - histogram["low_s"],
            align="edge",
            color=colour,
            edgecolor="white",
            linewidth=0.5,
            zorder=2,
        )
        axes.axvline(row["median_s"], color=INK, lw=1.6, zorder=3)
        told = f"n = {row['n']}, median {seconds(row['median_s'])} s"
    axes.text(0, 1.05, told, transform=axes.transAxes, fontsize=NOTE_PT, color=GREY)


def nonzero(histogram: pl.DataFrame) -> list[Note]:
    """A note on commands which ended with another status than 0; empty if there are none."""
    bad = histogram.unique("operation", maintain_order=True).filter(pl.col("nonzero_status") > 0)
    if bad.is_empty():
        return []
    told = [f"{name} {n}" for name, n in bad.select("operation", "nonzero_status").iter_rows()]
    return [Note("Status", f"ended with another than 0, and counted: {', '.join(told)}.")]


def pooled(runs: int) -> str:
    """How many runs a histogram stands for."""
    return f"{count(runs, 'run')}" + (" pooled" if runs > 1 else "")
