"""Histograms of sizes in bytes on a log axis: reads left, writes right, a row for each series.

Bins are powers of two: bin k holds sizes from 2^k to 2^(k+1) - 1 bytes.
"""

import math

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import NDArray

from analysis.page import GREY, INK, NOTE_PT, TEXT_PT, Page
from analysis.registry import Drawing
from analysis.series import look
from analysis.words import Note

DIRECTIONS = ("read", "written")
WIDTH, HEIGHT, GAP_X, GAP_Y = 4.1, 1.5, 0.55, 0.95  # inches, of a panel and between panels
LEFT, BOTTOM, HEAD = 0.8, 0.65, 1.0  # HEAD holds the key and the first row's name
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
DATA = pl.Schema(
    {
        "runs_of": pl.String(),
        "storage": pl.String(),
        "direction": pl.String(),
        "low_bytes": pl.Int64(),
        "high_bytes": pl.Int64(),
        "count": pl.Int64(),
        "runs": pl.Int64(),
        "n": pl.Int64(),
        "total_bytes": pl.Int64(),
        "median_bytes": pl.Int64(),
    }
)


def histograms(sizes: pl.DataFrame) -> pl.DataFrame:
    """One row per occupied bin and the empty ones between, with the columns of DATA.

    ``sizes`` has ``runs_of``, ``storage``, ``runs``, ``direction``, ``size_bytes`` and ``count``:
    how many things had that size. Sizes of 0 have no place on a log axis and are left out.
    """
    rows = []
    by = ["runs_of", "storage", "runs", "direction"]
    moved = sizes.filter(pl.col("size_bytes") > 0)
    for (runs_of, storage, runs, direction), group in moved.group_by(by, maintain_order=True):
        size, count = (group[name].to_numpy() for name in ("size_bytes", "count"))
        bins = np.frexp(size.astype(float))[1] - 1  # exact, as a logarithm is not
        heights = np.bincount(bins - bins.min(), weights=count).astype(int)
        for k, height in enumerate(heights, int(bins.min())):
            rows.append(
                {
                    "runs_of": runs_of,
                    "storage": storage,
                    "direction": direction,
                    "low_bytes": 2**k,
                    "high_bytes": 2 ** (k + 1) - 1,
                    "count": int(height),
                    "runs": runs,
                    "n": int(count.sum()),
                    "total_bytes": int((size * count).sum()),
                    "median_bytes": _median(size, count),
                }
            )
    return pl.DataFrame(rows, schema=DATA)


def panels(
    histogram: pl.DataFrame,
    *,
    title: str,
    subtitle: str,
    things: str,
    across: str,
    notes: list[Note],
) -> Drawing:
    """Draw ``histogram`` (as from histograms) of ``things``; ``across`` names the axis."""
    kinds = histogram["runs_of"].unique(maintain_order=True).to_list()
    body = HEAD + BOTTOM + len(kinds) * HEIGHT + (len(kinds) - 1) * GAP_Y if kinds else 0.6
    page = Page(title, subtitle, notes, width=LEFT + 2 * WIDTH + GAP_X + 0.4, body_height=body)
    if not kinds:
        page.text(0.3, 0.25, "no run was traced", color=GREY)
    for row, kind in enumerate(kinds):
        bottom = body - HEAD - row * (HEIGHT + GAP_Y) - HEIGHT
        of_kind = histogram.filter(pl.col("runs_of") == kind)
        page.text(LEFT - 0.5, bottom + HEIGHT + 0.42, kind, weight="bold")
        for column, direction in enumerate(DIRECTIONS):
            axes = page.axes(LEFT + column * (WIDTH + GAP_X), bottom, WIDTH, HEIGHT)
            _panel(axes, of_kind.filter(pl.col("direction") == direction), direction, histogram)
            if column == 0:
                axes.set_ylabel(f"{things} per run", fontsize=NOTE_PT)
            if row == len(kinds) - 1:
                axes.set_xlabel(across, fontsize=NOTE_PT)
    if kinds:
        _key(page, body, things)
    return Drawing(page.figure, histogram)


def binary(size_bytes: float) -> str:
    """A size with three figures and its binary unit."""
    k = min(int(math.log2(size_bytes) // 10), len(UNITS) - 1) if size_bytes >= 1 else 0
    value = size_bytes / 1024**k
    return f"{value:.4g} {UNITS[k]}" if value >= 1000 else f"{value:.3g} {UNITS[k]}"


def _panel(axes: Axes, bars: pl.DataFrame, direction: str, every: pl.DataFrame) -> None:
    bins = np.log2(every["low_bytes"].to_numpy().astype(float))
    low, high = int(bins.min()), int(bins.max()) + 1
    ticks = list(range(low, high + 1, max(1, math.ceil((high - low) / 8))))
    axes.set_xlim(low - 0.5, high + 0.5)
    axes.set_xticks(ticks, [binary(2**k) for k in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=NOTE_PT)
    axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter("{x:,.10g}")
    told = "none"
    if not bars.is_empty():
        row = bars.row(0, named=True)
        at = np.log2(bars["low_bytes"].to_numpy().astype(float))
        height = (bars["count"] / bars["runs"]).to_numpy()
        colour = look(row["storage"]).colour
        axes.bar(at, height, width=1, align="edge", color=colour, ec="white", lw=0.5, zorder=2)
        axes.axvline(math.log2(row["median_bytes"]), color=INK, lw=1.6, zorder=3)
        axes.set_ylim(0, 1.12 * height.max())
        told = (
            f"{row['n'] / row['runs']:,.10g} per run, median {binary(row['median_bytes'])}, "
            f"in all {binary(row['total_bytes'] / row['runs'])}"
        )
    axes.text(0, 1.05, f"{direction}: {told}", transform=axes.transAxes, fontsize=NOTE_PT,
              color=GREY)  # fmt: skip


def _key(page: Page, top: float, things: str) -> None:
    page.figure.legend(
        handles=[
            Patch(color=GREY, label=f"{things} in a bin of a factor 2"),
            Line2D([], [], color=INK, lw=1.6, label="median"),
        ],
        loc="upper left",
        bbox_to_anchor=(0.3 / page.width - 0.005, (page.foot_height + top) / page.height),
        ncols=2,
        fontsize=TEXT_PT,
        borderaxespad=0,
        handlelength=1.4,
    )


def _median(size: NDArray[np.int64], count: NDArray[np.int64]) -> int:
    """The lower median of sizes that occur so often."""
    order = np.argsort(size)
    middle = np.searchsorted(np.cumsum(count[order]), count.sum() / 2)
    return int(size[order][middle])
