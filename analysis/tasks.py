"""Histograms of the bytes that each task read, and wrote, on a log axis of decimal MB."""

import math

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullFormatter

from analysis.page import GREY, NOTE_PT, TEXT_PT, Page
from analysis.registry import Drawing
from analysis.words import Note, seconds

DIRECTIONS = ("read", "written")
BINS_PER_DECADE = 8
SMALLEST = 100  # bytes; what is smaller counts in the bin that begins there
# Okabe and Ito's palette: told apart with any colour vision
COLOURS = ("#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#999999")
LEFT, WIDTH, HEIGHT, GAP, HEAD, BOTTOM, ROW = 0.85, 8.2, 1.75, 0.55, 0.55, 0.75, 0.21
MANY = 50  # tasks in a bin: single ones would be lost on a linear axis
DATA = pl.Schema(
    {
        "operation": pl.String(),
        "direction": pl.String(),
        "low_bytes": pl.Float64(),
        "high_bytes": pl.Float64(),
        "count": pl.Int64(),
        "runs": pl.Int64(),
        "n": pl.Int64(),
        "median_bytes": pl.Float64(),
        "largest_bytes": pl.Int64(),
        "mean_elapsed_s": pl.Float64(),
    }
)


def histogram(operations: pl.DataFrame) -> pl.DataFrame:
    """A row for each occupied bin of each operation and direction, with the columns of DATA."""
    rows = []
    runs = operations["record"].n_unique()
    for (name,), tasks in operations.group_by(["operation"], maintain_order=True):
        for direction in DIRECTIONS:
            sizes = tasks[f"{direction}_bytes"].drop_nulls()
            for k, number in sizes.map_elements(_bin, pl.Int64).value_counts(sort=False).rows():
                rows.append(
                    (
                        *(name, direction, _edge(k), _edge(k + 1), number, runs, len(sizes)),
                        *(sizes.median(), sizes.max(), tasks["elapsed_s"].mean()),
                    )
                )
    table = pl.DataFrame(rows, schema=DATA, orient="row")
    return table.sort(pl.col("operation").rle_id(), "direction", "low_bytes")


def draw(operations: pl.DataFrame, *, title: str, subtitle: str, notes: list[Note]) -> Drawing:
    """Reads above, writes below, stacked by operation; the numbers of each operation under it."""
    bins = histogram(operations.sort("start_s"))
    names = bins["operation"].unique(maintain_order=True).to_list()
    table = ROW * (len(names) + 1) + 0.2
    body = HEAD + 2 * HEIGHT + GAP + BOTTOM + table if names else 0.3
    page = Page(title, subtitle, notes, width=LEFT + WIDTH + 0.35, body_height=body)
    if not names:
        return Drawing(page.figure, bins)
    colours = dict(zip(names, COLOURS * (1 + len(names) // len(COLOURS)), strict=False))
    for i, direction in enumerate(DIRECTIONS):
        bottom = body - HEAD - HEIGHT - i * (HEIGHT + GAP)
        axes = page.axes(LEFT, bottom, WIDTH, HEIGHT)
        _panel(axes, bins, direction, colours)
    axes.set_xlabel("bytes of one task [MB, 10⁶ bytes]")
    _key(page, colours, body)
    _numbers(page, bins, names, table)
    return Drawing(page.figure, bins)


def _panel(axes: Axes, bins: pl.DataFrame, direction: str, colours: dict[str, str]) -> None:
    shown = bins.filter(pl.col("direction") == direction)
    below: dict[float, float] = {}
    for row in shown.iter_rows(named=True):
        low, height = row["low_bytes"], row["count"] / row["runs"]
        start = below.get(low, 0.0)
        width = (row["high_bytes"] - low) / 1e6
        axes.bar(low / 1e6, height, width, start, align="edge", color=colours[row["operation"]],
                 edgecolor="white", linewidth=0.5)  # fmt: skip
        below[low] = start + height
    axes.set_xscale("log")
    low, high = min(bins["low_bytes"].to_list()), max(bins["high_bytes"].to_list())
    axes.set_xlim(low / 2e6, high * 2e-6)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_title(f"bytes {direction}", loc="left", fontsize=TEXT_PT, weight="bold")
    axes.set_ylabel("tasks per run")
    highest = max(below.values(), default=1.0)
    if highest > MANY:
        axes.set_yscale("log")
        axes.set_ylim(0.5, highest * 2)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, highest * 1.15)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))


def _key(page: Page, colours: dict[str, str], top: float) -> None:
    page.figure.legend(
        handles=[Patch(color=colour, label=name) for name, colour in colours.items()],
        loc="upper left",
        bbox_to_anchor=(0.3 / page.width - 0.005, (page.foot_height + top) / page.height),
        ncols=5,
        fontsize=TEXT_PT,
        borderaxespad=0,
        handlelength=1.2,
    )


def _numbers(page: Page, bins: pl.DataFrame, names: list[str], top: float) -> None:
    """The numbers of each operation, in rows under the panels."""
    columns = (LEFT, 3.6, 5.2, 6.8, 8.6)
    heads = ("", "tasks per run", "read, median", "written, median", "time, mean")
    for x, text in zip(columns, heads, strict=True):
        page.text(x, top - ROW, text, ha="left" if x == LEFT else "right", color=GREY,
                  fontsize=NOTE_PT)  # fmt: skip
    for i, name in enumerate(names):
        rows = bins.filter(pl.col("operation") == name)
        first = rows.row(0, named=True)
        medians = {row["direction"]: row["median_bytes"] for row in rows.iter_rows(named=True)}
        texts = (
            name,
            f"{first['n'] / first['runs']:g}",
            *(_megabytes(medians[direction]) for direction in DIRECTIONS),
            f"{seconds(first['mean_elapsed_s'])} s",
        )
        for x, text in zip(columns, texts, strict=True):
            side = "left" if x == LEFT else "right"
            page.text(x, top - ROW * (i + 2), text, ha=side, fontsize=NOTE_PT)


def _megabytes(size: float) -> str:
    if size < 1e4:
        return f"{size:,.0f} B"
    return f"{size / 1e6:,.0f} MB" if size >= 1e9 else f"{size / 1e6:.4g} MB"


def _bin(size: int) -> int:
    return math.floor(math.log10(max(size, SMALLEST)) * BINS_PER_DECADE)


def _edge(k: int) -> float:
    return float(10 ** (k / BINS_PER_DECADE))
