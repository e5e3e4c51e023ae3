"""Sato et al.: performance of ABCI. Figure 13: accuracy of a training with ChainerMN."""

from typing import Any

import polars as pl
from matplotlib.lines import Line2D

from analysis.page import GREY, TEXT_PT, Page
from analysis.pipelines import SERIES
from analysis.references import printed
from analysis.registry import Drawing, figure
from analysis.tables import Tables
from analysis.trainings import largest, named, notes, trainings, where
from analysis.words import Note

CURVES = {"epoch": ("training", "-"), "validation": ("validation", "--")}
LEFT, RIGHT, WIDTH, PLOT = 0.95, 3.3, 5.6, 3.6  # inches
TITLE = "Training: accuracy against time"


@figure("sato", 13, title=TITLE)
def accuracy(tables: Tables) -> Drawing:
    """Accuracy [%] of training and of validation after each epoch, against time [s]."""
    chosen = largest(trainings(tables))
    series = named(chosen).select("record", "mode")
    data = curves(chosen.ok().operations).join(series, on="record", maintain_order="left")
    size = {"width": LEFT + WIDTH + RIGHT, "body_height": PLOT + 0.85}
    told = [*_careful(chosen, data), *notes(chosen), *printed("sato", 13)]
    page = Page(TITLE, f"{where(chosen)}; one line per run.", told, **size)
    axes = page.axes(LEFT, 0.65, WIDTH, PLOT)
    for (_, kind, mode), curve in data.group_by("record", "curve", "mode", maintain_order=True):
        colour = SERIES[str(mode)].look.colour
        style: dict[str, Any] = {"color": colour, "ls": CURVES[str(kind)][1], "lw": 1.6}
        style["alpha"] = 0.75
        dots = "o" if len(curve) <= 20 else ""
        axes.plot(curve["time_s"], curve["accuracy_percent"], marker=dots, ms=3.5, **style)
    axes.set_xlabel("time since the start of the training [s]", labelpad=4)
    axes.set_ylabel("accuracy [%]")
    axes.set_xlim(left=0)
    axes.set_ylim(0, max(10.0, min(100.0, axes.get_ylim()[1] * 1.05)) if len(data) else 100)
    if data.is_empty():
        place: dict[str, Any] = {"ha": "center", "transform": axes.transAxes}
        axes.text(0.5, 0.5, "no run came to a good end", **place)
    modes = [mode for name, mode in SERIES.items() if name in set(data["mode"])]
    handles = [Line2D([], [], color=mode.look.colour, lw=1.6, label=mode.name) for mode in modes]
    drawn = [CURVES[kind] for kind in CURVES if kind in set(data["curve"])]
    handles += [Line2D([], [], color=GREY, ls=line, lw=1.6, label=name) for name, line in drawn]
    if drawn:
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.02)}
        axes.legend(handles=handles, fontsize=TEXT_PT, **beside)
    return Drawing(page.figure, data)


def curves(operations: pl.DataFrame) -> pl.DataFrame:
    """Accuracy [%] on the images of all ranks, and the time [s] at which the last of them had it.

    A rank's time is since its own start, for clocks of two hosts differ; all start at once.
    """
    rows = operations.filter(pl.col("operation").is_in(list(CURVES)))
    began = pl.col("start_s").min().over("record", "rank")
    images = pl.col("images").fill_null(1)  # of records that do not tell them: as many on each rank
    return (
        rows.with_columns(time_s=pl.col("start_s") + pl.col("elapsed_s") - began)
        .group_by("record", "epoch", curve="operation")
        .agg(
            pl.col("time_s").max(),
            accuracy_percent=100 * (pl.col("accuracy") * images).sum() / images.sum(),
            ranks=pl.col("rank").n_unique(),
        )
        .sort("record", "curve", "epoch")
    )


def _careful(chosen: Tables, data: pl.DataFrame) -> list[Note]:
    """What the curves do not show, for want of validation or of real images."""
    if data.is_empty():
        return []
    told = []
    if "validation" not in set(data["curve"]):
        text = "no images were held back: the curves tell how well those are known that were learnt"
        told.append(Note("Careful", f"{text}, and when."))
    if "synthetic" in set(chosen.ok().cells["dataset_source"]):
        text = (
            "the images are random, with nothing in common within a class: all that can be learnt "
            "is these very images by heart, and validation can't get beyond chance. The curves "
            "show that and when accuracies are told, not how well a network does on ImageNet."
        )
        told.append(Note("Careful", text))
    return told
