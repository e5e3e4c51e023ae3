"""Where the time of each epoch goes: one stacked bar per epoch, summed over all ranks."""

from typing import Any

import polars as pl
from matplotlib.patches import Patch

from analysis.page import GREY, NOTE_PT, TEXT_PT, Page
from analysis.words import Note, seconds

# From the bottom, in the order of the paper's bars. Okabe and Ito's palette.
PHASES = {
    "other": ("#999999", "other: pictures cut and mirrored, optimizer"),
    "load": ("#E69F00", "load: waiting for the minibatch"),
    "forward": ("#56B4E9", "forward"),
    "backward": ("#0072B2", "backward"),
    "allreduce": ("#009E73", "all-reduce"),
}
LEFT, RIGHT, PLOT, BOTTOM = 0.95, 3.4, 3.4, 1.25  # inches: around the plot, its height, below it
COLUMN, LEAST = 0.75, 4.2


def stacked(
    epochs: pl.DataFrame, *, title: str, subtitle: str, notes: list[Note]
) -> tuple[Page, pl.DataFrame]:
    """Means of the runs, so that the parts add up to the mean of the whole; each run as a dot.

    ``epochs`` has ``record``, ``epoch``, ``operation`` (a phase) and ``elapsed_s`` [s]. Returns the
    page and its numbers.
    """
    data = (
        epochs.group_by("epoch", "operation")
        .agg(pl.col("elapsed_s").mean().alias("mean_s"), pl.col("record").n_unique().alias("n"))
        .with_columns(
            share_percent=100 * pl.col("mean_s") / pl.col("mean_s").sum().over("epoch"),
            place=pl.col("operation").replace_strict(list(PHASES), range(len(PHASES))),
        )
        .sort("epoch", "place")
        .drop("place")
    )
    numbers = sorted(data["epoch"].unique())
    width = max(LEAST, COLUMN * len(numbers))
    size = {"width": LEFT + width + RIGHT, "body_height": BOTTOM + PLOT + 0.2}
    page = Page(title, subtitle, notes, **size)
    axes = page.axes(LEFT, BOTTOM, width, PLOT)
    heights = {(row["epoch"], row["operation"]): row for row in data.iter_rows(named=True)}
    for place, number in enumerate(numbers):
        bottom = 0.0
        for phase, (colour, _) in PHASES.items():
            height = heights[number, phase]["mean_s"]
            axes.bar(place, height, 0.66, bottom, color=colour, ec="white", lw=0.6, zorder=2)
            bottom += height
        shares = [heights[number, phase]["share_percent"] for phase in ("load", "other")]
        _below(axes, place, [f"{seconds(bottom)} s", *(f"{share:.0f} %" for share in shares)])
    runs = epochs.group_by("record", "epoch").agg(pl.col("elapsed_s").sum())
    places = [numbers.index(number) for number in runs["epoch"]]
    axes.plot(places, runs["elapsed_s"], "o", ms=4, mfc="white", mec="#222222", mew=0.9, zorder=4)
    axes.set_xticks(range(len(numbers)), [str(number) for number in numbers])
    axes.set_xlim(-0.6, max(len(numbers), 1) - 0.4)
    axes.set_xlabel("epoch", labelpad=2)
    axes.set_ylabel("time of all ranks together [s]")
    axes.grid(axis="x", visible=False)
    if not numbers:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no run came to a good end", ha="center", transform=axes.transAxes)
    _legend(axes)
    return page, data


def _below(axes: Any, place: int, lines: list[str]) -> None:
    """Whole and shares of an epoch under its bar."""
    where: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center"}
    for number, text in enumerate(lines):
        weight = "bold" if number == 0 else "normal"
        at = -(0.58 + 0.18 * number) / PLOT
        axes.text(place, at, text, fontsize=NOTE_PT, weight=weight, va="center", **where)


def _legend(axes: Any) -> None:
    from matplotlib.lines import Line2D

    handles: list[Any] = [
        Patch(fc=colour, label=name) for colour, name in reversed(list(PHASES.values()))
    ]
    dot: dict[str, Any] = {"marker": "o", "ms": 4, "mfc": "white", "mec": "#222222", "lw": 0}
    handles.append(Line2D([], [], **dot, label="one run, all parts"))
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.02)}
    axes.legend(handles=handles, fontsize=TEXT_PT, borderaxespad=0, labelspacing=0.55, **place)
    for number, text in enumerate(("whole (mean)", "share of load", "share of other")):
        at = -(0.58 + 0.18 * number) / PLOT
        key: dict[str, Any] = {"transform": axes.transAxes, "fontsize": NOTE_PT, "color": GREY}
        axes.text(1.02, at, text, va="center", **key)
