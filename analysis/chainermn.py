"""Serizawa and Tatebe: I/O for large machine-learning training. Figures 7 to 11, tables 4 and A.

Data-parallel training with ChainerMN, or with PyTorch DDP, one line per input pipeline (sections
4.2 to 4.4, appendix).
"""

import polars as pl

from analysis.breakdown import PHASES, stacked
from analysis.pipelines import SERIES, against_number, table
from analysis.references import printed, reference
from analysis.registry import Drawing, figure
from analysis.series import medians, metric
from analysis.tables import Tables
from analysis.trainings import largest, notes, of, runs, staged, trainings, where
from analysis.words import Note, seconds

MIB = 2**20
PAPERS = "Cygnus, ResNet-50, four V100 a node, 10 epochs, one run"
HEADS = ["nodes", "time [s]", "iterations", "per second", "MiB/s", "n"]
HEADS += ["paper: time [s]", "iterations", "per second", "MiB/s"]


@figure("serizawa", 7, title="Training: time against nodes, by pipeline")
def training_time(tables: Tables) -> Drawing:
    """Time of all epochs [s] against nodes, one line per pipeline."""
    chosen = trainings(tables)
    return _against_nodes(
        chosen,
        runs(chosen, "training_time"),
        title="Training: time against nodes, by pipeline",
        subtitle="Time of all epochs. Lower is better.",
        more=printed("serizawa", 7),
    )


@figure("serizawa", 8, title="Training: time with that of staging, against nodes")
def with_staging(tables: Tables) -> Drawing:
    """The same, with the time that data took to be staged [s] where they were."""
    chosen = trainings(tables)
    stage_in = chosen.spans.filter(pl.col("name") == "stage_in").select("record", "elapsed_s")
    both = runs(chosen, "training_time").join(stage_in, on="record", how="left")
    return _against_nodes(
        chosen,
        both.with_columns(value=pl.col("value") + pl.col("elapsed_s").fill_null(0.0)),
        title="Training: time with that of staging, against nodes",
        subtitle="Time of all epochs and of what came before: staging of ssd and gfarm, start "
        "of lazy's agents. Lower is better.",
        more=[*staged(chosen), *printed("serizawa", 8)],
    )


def parts(tables: Tables, number: int | str, mode: str) -> Drawing:
    """Time of the ranks in each part of an iteration [s], per epoch."""
    chosen = largest(of(trainings(tables), mode))
    rows = chosen.ok().operations.filter(pl.col("operation").is_in(list(PHASES)))
    by = ["record", "epoch", "operation"]
    page, data = stacked(
        rows.group_by(by).agg(pl.col("elapsed_s").sum()),
        title=f"Training: parts of each epoch, {mode}",
        subtitle=f"{where(chosen)}; sums over all ranks. Mean of the runs.",
        notes=[*notes(chosen), *printed("serizawa", number)],
    )
    return Drawing(page.figure, data)


@figure("serizawa", 9, title="Training: parts of each epoch, paper3")
def parts_of_paper3(tables: Tables) -> Drawing:
    """Of the paper's pipeline."""
    return parts(tables, 9, "paper3")


@figure("serizawa", 10, title="Training: parts of each epoch, ssd")
def parts_of_ssd(tables: Tables) -> Drawing:
    """The same of the baseline on node-local storage."""
    return parts(tables, 10, "ssd")


@figure("serizawa", 11, title="Training: parts of each epoch, direct")
def parts_of_direct(tables: Tables) -> Drawing:
    """The same of the baseline on the parallel file system."""
    return parts(tables, 11, "direct")


@figure("serizawa", "lazy-epochs", title="Training: parts of each epoch, lazy")
def parts_of_lazy(tables: Tables) -> Drawing:
    """The same of burstlab's own pipeline, which the paper does not have."""
    return parts(tables, "lazy-epochs", "lazy")


@figure("serizawa", "table-4", title="Training: waiting for the first minibatches")
def first_loads(tables: Tables) -> Drawing:
    """Time [s] that all ranks waited for minibatches in iterations 1 and 2, and in epoch 1."""
    chosen = largest(trainings(tables))
    data = pl.DataFrame({"mode": list(SERIES)})
    for name, column in (
        ("first_load_time", "first_s"),
        ("second_load_time", "second_s"),
        ("first_epoch_load_time", "epoch_s"),
    ):
        found = medians(runs(chosen, name), ["mode"]).select("mode", "n", "median")
        own = found.rename({"median": column})
        own = own if column == "first_s" else own.drop("n")
        data = data.join(own, on="mode", how="left", maintain_order="left")
    data = data.with_columns(
        first_percent=100 * pl.col("first_s") / pl.col("epoch_s"),
        second_percent=100 * pl.col("second_s") / pl.col("epoch_s"),
    ).filter(pl.col("n").is_not_null() | (pl.col("mode") != "gfarm"))
    theirs = {row["metric"]: row["value"].split(";") for row in _rows("table-4")}
    ours = ["first_s", "first_percent", "second_s", "second_percent", "epoch_s", "n"]
    rows = [
        [SERIES[r["mode"]].name, *(_text(r[c]) for c in ours), *theirs.get(r["mode"], ["-"] * 5)]
        for r in data.to_dicts()
    ]
    heads = ["pipeline", "first [s]", "[%]", "second [s]", "[%]", "epoch 1 [s]", "n"]
    page = table(
        [*heads, "paper: first [s]", "[%]", "second [s]", "[%]", "epoch 1 [s]"],
        rows,
        [SERIES[mode].look for mode in data["mode"]],
        title="Training: waiting for the first minibatches",
        subtitle=f"{where(chosen)}; sums over all ranks, medians of n runs. "
        f"The paper: {PAPERS} on 16 nodes.",
        notes=[*notes(chosen), *printed("serizawa", "table-4-errors")],
    )
    return Drawing(page.figure, data)


def details(tables: Tables, number: str, mode: str) -> Drawing:
    """Time [s], iterations, their rate [1/s] and the bandwidth that it means [MiB/s].

    The bandwidth is that of a node; of all nodes for direct.
    """
    everywhere = mode == "direct"
    chosen = of(trainings(tables), mode)
    data = _bandwidths(chosen, everywhere)
    theirs = {row["metric"]: row["value"].split(";") for row in _rows(number)}
    drawn = {row["nodes"]: row for row in data.to_dicts()}
    columns = ("time_s", "iterations", "rate", "bandwidth", "n")
    rows = []
    for nodes in sorted({*drawn, *(int(name) for name in theirs)}):
        own = drawn.get(nodes, dict.fromkeys(columns))
        rows.append([str(nodes), *(_text(own[c]) for c in columns)])
        rows[-1] += theirs.get(str(nodes), ["-"] * 4)
    page = table(
        HEADS,
        rows,
        [SERIES[mode].look] * len(rows),
        title=f"Training: iterations and bandwidth, {mode}",
        subtitle=f"Medians of n runs; bandwidth of {'all nodes' if everywhere else 'each node'}, "
        "estimated as the paper does: mean bytes of a minibatch x iterations x ranks / time."
        + (f" The paper: {PAPERS}." if theirs else ""),
        notes=[*notes(chosen), *printed("serizawa", f"{number}-errors")],
    )
    return Drawing(page.figure, data)


@figure("serizawa", "table-a1", title="Training: iterations and bandwidth, ssd")
def details_of_ssd(tables: Tables) -> Drawing:
    """Bandwidth of each node."""
    return details(tables, "table-a1", "ssd")


@figure("serizawa", "table-a2", title="Training: iterations and bandwidth, direct")
def details_of_direct(tables: Tables) -> Drawing:
    """The same, but with the bandwidth of all nodes."""
    return details(tables, "table-a2", "direct")


@figure("serizawa", "table-a3", title="Training: iterations and bandwidth, paper3")
def details_of_paper3(tables: Tables) -> Drawing:
    """The same with the bandwidth of each node."""
    return details(tables, "table-a3", "paper3")


@figure("serizawa", "lazy-table", title="Training: iterations and bandwidth, lazy")
def details_of_lazy(tables: Tables) -> Drawing:
    """The same of burstlab's own pipeline, which the paper does not have."""
    return details(tables, "lazy-table", "lazy")


def _against_nodes(
    chosen: Tables, values: pl.DataFrame, *, title: str, subtitle: str, more: list[Note]
) -> Drawing:
    page, data = against_number(
        values.with_columns(number=pl.col("nodes")),
        "nodes",
        title=title,
        subtitle=subtitle,
        measure="time [s]",
        notes=[*notes(chosen), *more],
    )
    return Drawing(page.figure, data)


def _bandwidths(chosen: Tables, everywhere: bool) -> pl.DataFrame:
    times = runs(chosen, "training_time").rename({"value": "time_s"})
    steps = metric(chosen, "iterations").select("record", iterations="value")
    processes = pl.col("ranks") * (pl.col("nodes") if everywhere else 1)
    minibatch = pl.col("batch") * pl.col("dataset_bytes") / pl.col("dataset_files") / MIB
    each = times.join(steps, on="record").with_columns(
        rate=pl.col("iterations") / pl.col("time_s"),
        bandwidth=minibatch * processes * pl.col("iterations") / pl.col("time_s"),
    )
    names = ("time_s", "iterations", "rate", "bandwidth")
    found = each.group_by("nodes").agg(*(pl.col(name).median() for name in names), n=pl.len())
    return found.with_columns(pl.col("iterations", "n").cast(pl.Int64)).sort("nodes")


def _rows(number: str) -> list[dict[str, str]]:
    return reference("serizawa", number).to_dicts()


def _text(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else seconds(value)
