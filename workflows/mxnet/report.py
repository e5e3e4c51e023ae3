"""What rank 0 tells of a training: metrics, operations, facts, and what the check looks at."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from parameters import Parameters
from share import Share

from burstlab.training.report import common_facts, metric, process_start, write_files

COLUMNS = ("operation", "start_s", "elapsed_s", "host", "status", "rank", "wait_s")


def write_report(
    cell: Path,
    chosen: Parameters,
    share: Share,
    ranks: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
) -> None:
    """Write metrics.json, operations.csv, facts.json and ranks.json into the cell's directory."""
    told = facts(chosen, share, ranks, about)
    write_files(
        cell, ranks, metrics(chosen, ranks, about), told, [COLUMNS, *operations(chosen, ranks)]
    )


def metrics(
    chosen: Parameters, ranks: Sequence[Mapping[str, Any]], about: Mapping[str, Any]
) -> Iterable[Mapping[str, Any]]:
    """Times of the slowest rank; the wait for data is the mean of all ranks."""
    epochs = [[rank["epochs"][number] for rank in ranks] for number in range(chosen.epochs)]
    times = [max(one["elapsed_s"] for one in epoch) for epoch in epochs]
    images = sum(one["images"] for epoch in epochs for one in epoch)
    yield metric("training_time", sum(times))
    yield metric("throughput", images / sum(times), "images/s", "higher")
    for number, time_s in enumerate(times, 1):
        yield metric(f"epoch_{number}_time", time_s)
    waits = [sum(one["wait_s"] for one in rank["epochs"]) for rank in ranks]
    yield metric("minibatch_wait_time", fmean(waits))
    yield metric("first_minibatch_time", max(one["first_wait_s"] for one in epochs[0]))
    if chosen.format == "recordio":
        yield metric("pack_time", max(rank["pack"][1] for rank in ranks))
    yield process_start(about)


def facts(
    chosen: Parameters,
    share: Share,
    ranks: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
) -> Mapping[str, object]:
    """What was trained, with what, and which part of the time counts."""
    used = share.steps(chosen.batch) * chosen.batch * share.ranks
    return {
        **common_facts(chosen, ranks, about),
        "images_per_epoch": f"{used} of {len(share.images)}",
        "timed": "the epochs; not the start, the packing and the first pass through the network",
    }


def operations(
    chosen: Parameters, ranks: Sequence[Mapping[str, Any]]
) -> Iterable[Sequence[object]]:
    """One row for the packing and each epoch of each rank."""
    for rank in ranks:
        own = (rank["host"], 0, rank["rank"])
        if chosen.format == "recordio":
            start_s, elapsed_s = rank["pack"]
            yield ("pack", f"{start_s:.6f}", f"{elapsed_s:.6f}", *own, "")
        for epoch in rank["epochs"]:
            times = [f"{epoch[name]:.6f}" for name in ("start_s", "elapsed_s", "wait_s")]
            yield ("epoch", *times[:2], *own, times[2])
