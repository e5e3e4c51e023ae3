"""What each storage of a site takes to come and to go, and what it does: the storage probe."""

import re
from typing import Any

import polars as pl

from analysis.page import GREY, TEXT_PT, Page, text_width
from analysis.references import reference
from analysis.registry import Drawing, figure
from analysis.scaling import against_nodes
from analysis.series import labelled, look, medians, metric
from analysis.tables import Tables
from analysis.words import Note, absent, conditions, issues, seconds

PROBE = pl.col("workload") == "probe"
ROW, GAP, TOP = 0.3, 0.28, 0.45  # inches: of the table, between its columns, above its first row
NUMBERS = {  # column of the table: metric of the probe, or span of the cell
    "start [s]": "provision",
    "first look [s]": "ready_time",
    "stop [s]": "teardown",
    "write [MB/s]": "write_bandwidth",
    "read [MB/s]": "read_bandwidth",
    "own disk [%]": "local_share",
}


@figure("storage", 1, title="Storages: from start to probed mount, against nodes")
def provisioning(tables: Tables) -> Drawing:
    """Time from the start of a storage until every host was seen to read and write [s]."""
    return _span(tables, 1, "provision", "from start to probed mount")


@figure("storage", 2, title="Storages: time to take them down, against nodes")
def teardown(tables: Tables) -> Drawing:
    """Time until nothing of a storage is left on any host [s]."""
    return _span(tables, 2, "teardown", "from stop to nothing left")


@figure("storage", 3, title="Storages: what the probe found")
def found(tables: Tables) -> Drawing:
    """Every storage at every number of nodes, with the reason where it could not be had."""
    probed = tables.where(PROBE)
    cells = labelled(probed.cells)
    data = _findings(probed, cells)
    rows = data.rows(named=True)
    heads = ["storage", "nodes", "n", *NUMBERS, "stripes"]
    texts = [[_text(row, head) for head in heads] for row in rows]
    widths = [
        max(text_width(text, TEXT_PT) for text in column)
        for column in zip(heads, *texts, strict=True)
    ]
    page = Page(
        "Storages: what the probe found",
        "Medians of n runs. Bandwidth is that of all nodes together; own disk: the least share "
        "of what a node wrote that lies on its own disk.",
        [*absent(cells), *issues(cells), *conditions(cells)],
        width=max(9.0, 0.6 + sum(widths) + GAP * len(widths) + 0.3),
        body_height=TOP + ROW * len(rows) + 0.1,
    )
    _draw(page, heads, texts, widths, [row["storage"] for row in rows])
    return Drawing(page.figure, data)


def _span(tables: Tables, number: int, name: str, measure: str) -> Drawing:
    probed = tables.where(PROBE)
    spans = probed.spans.filter(pl.col("name") == name)
    runs = probed.ok().cells.join(spans.select("record", value="elapsed_s"), on="record")
    elsewhere = [
        Note("Elsewhere", f"{row['conditions']}: {row['value']} {row['unit']} ({row['source']}).")
        for row in reference("storage", number).iter_rows(named=True)
    ]
    return against_nodes(
        probed.cells,
        runs,
        title=f"Storages: time {measure}",
        measure=f"{measure} [s]",
        notes=elsewhere,
    )


def _findings(probed: Tables, cells: pl.DataFrame) -> pl.DataFrame:
    """A row for each series and number of nodes: the medians, and how its cells ended."""
    by = ["series", "storage", "nodes"]
    table = cells.group_by(by, maintain_order=True).agg(
        pl.col("status").unique(maintain_order=True).str.join(", "),
        (pl.col("status") == "ok").sum().alias("n"),
        pl.col("reason").unique(maintain_order=True).str.join("; "),
        pl.col("workload_facts").list.join("; ").first().alias("facts"),
    )
    names = cells.select("record", "series")
    for column, name in NUMBERS.items():
        spans = probed.spans.filter(pl.col("name") == name).select("record", value="elapsed_s")
        runs = probed.ok().cells.join(spans, on="record") if len(spans) else metric(probed, name)
        points = medians(runs.join(names, on="record"), by).select(*by, pl.col("median"))
        table = table.join(points.rename({"median": column}), on=by, how="left")
    stripes = pl.col("facts").map_elements(_stripes, return_dtype=pl.String)
    return table.with_columns(stripes=stripes).drop("facts")


def _stripes(facts: str) -> str:
    told = re.search(r"stripes ([^;]+)", facts)
    return told[1] if told else ""


def _text(row: dict[str, Any], head: str) -> str:
    """What stands in the table; a storage that could not be had has a status and no numbers."""
    value = row["series"] if head == "storage" else row[head]
    if head == "n" and row["status"] != "ok":
        return str(row["status"])
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return seconds(value) if "[s]" in head else f"{value:.0f}"
    return str(value)


def _draw(
    page: Page, heads: list[str], texts: list[list[str]], widths: list[float], storages: list[str]
) -> None:
    axes = page.axes(0.3, 0.1, page.width - 0.6, page.body_height - 0.1)
    axes.set_axis_off()
    axes.set_xlim(0, page.width - 0.6)
    axes.set_ylim(page.body_height - 0.1, 0)
    at = 0.3
    for column, (head, width) in enumerate(zip(heads, widths, strict=True)):
        right = 0 < column < len(heads) - 1
        place: dict[str, Any] = {"va": "center", "ha": "right" if right else "left"}
        x = at + width if right else at
        axes.text(x, 0.15, head, fontsize=TEXT_PT, weight="bold", **place)
        for row, text in enumerate(line[column] for line in texts):
            colour = GREY if text == "-" else "black"
            axes.text(x, TOP + ROW * row, text, fontsize=TEXT_PT, color=colour, **place)
        at += width + GAP
    for row, storage in enumerate(storages):
        style = look(storage)
        axes.plot(0.1, TOP + ROW * row, style.marker, ms=7, color=style.colour)
        if row and storage != storages[row - 1]:
            axes.axhline(TOP + ROW * (row - 0.5), color=GREY, lw=0.5)
