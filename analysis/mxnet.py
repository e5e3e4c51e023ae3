"""Sawada and Tatebe: I/O performance of distributed burst buffers. Figure 4: Horovod on MXNet."""

from dataclasses import replace

import polars as pl

from analysis.references import printed
from analysis.registry import Drawing, figure
from analysis.scaling import against_nodes
from analysis.series import medians, metric
from analysis.tables import Tables
from analysis.words import Note, count, trained

MXNET = pl.col("workload") == "mxnet"


@figure("sawada", 4, title="MXNet: time of the training against nodes")
def training_time(tables: Tables) -> Drawing:
    """Time of the epochs [s] against nodes, one line per storage and format of the images."""
    mxnet = what_differs(tables.where(MXNET))
    return against_nodes(
        mxnet.cells,
        metric(mxnet, "training_time"),
        title="MXNet: time of the training against nodes",
        measure="time of the epochs [s]",
        notes=[*trained(mxnet.cells), *throughput(mxnet), *printed("sawada", 4)],
    )


def what_differs(tables: Tables) -> Tables:
    """The same with those parameters only in which cells differ: what a series is named after."""
    given = [row.split(",") for row in tables.cells["parameters"]]
    everywhere = set(given[0]).intersection(*given) if given else set()
    names = [",".join(word for word in row if word not in everywhere) for row in given]
    return replace(
        tables, cells=tables.cells.with_columns(parameters=pl.Series(names, dtype=pl.String))
    )


def throughput(tables: Tables) -> list[Note]:
    """Images per second, and the share of the time that ranks waited for minibatches."""
    runs = metric(tables, "throughput")
    if runs.is_empty():
        return []
    rates = medians(runs.sort("nodes"), ["nodes"])
    told = [f"{row['median']:.0f} on {count(row['nodes'], 'node')}" for row in rates.to_dicts()]
    waits = metric(tables, "minibatch_wait_time").select("record", wait_s=pl.col("value"))
    times = metric(tables, "training_time").select("record", time_s=pl.col("value"))
    both = waits.join(times, on="record").select("wait_s", "time_s")
    shares = [f"{100 * wait_s / time_s:.0f}" for wait_s, time_s in both.iter_rows()]
    ends = dict.fromkeys([min(shares, key=float), max(shares, key=float)])
    return [
        Note(
            "Throughput",
            f"images per second of the epochs alone, median over all series: {', '.join(told)}; "
            f"ranks waited for minibatches {' to '.join(ends)} % of that time.",
        )
    ]
