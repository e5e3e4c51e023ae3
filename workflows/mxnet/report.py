"""What rank 0 tells of a training: metrics, operations, facts, and what the check looks at."""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from parameters import Parameters
from share import Share

RANKS = "ranks.json"
COLUMNS = ("operation", "start_s", "elapsed_s", "host", "status", "rank", "wait_s")


def write_report(
    cell: Path,
    chosen: Parameters,
    share: Share,
    ranks: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
) -> None:
    """Write metrics.json, operations.csv, facts.json and ranks.json into the cell's directory."""
    (cell / RANKS).write_text(json.dumps(ranks, indent=1))
    (cell / "metrics.json").write_text(json.dumps(list(metrics(chosen, ranks, about)), indent=1))
    (cell / "facts.json").write_text(json.dumps(facts(chosen, share, ranks, about), indent=1))
    with (cell / "operations.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(operations(chosen, ranks))


def metrics(
    chosen: Parameters, ranks: Sequence[Mapping[str, Any]], about: Mapping[str, Any]
) -> Iterable[Mapping[str, Any]]:
    """Times of the slowest rank; the wait for data is the mean of all ranks."""
    epochs = [[rank["epochs"][number] for rank in ranks] for number in range(chosen.epochs)]
    times = [max(one["elapsed_s"] for one in epoch) for epoch in epochs]
    images = sum(one["images"] for epoch in epochs for one in epoch)
    yield _metric("training_time", sum(times))
    yield _metric("throughput", images / sum(times), "images/s", "higher")
    for number, time_s in enumerate(times, 1):
        yield _metric(f"epoch_{number}_time", time_s)
    waits = [sum(one["wait_s"] for one in rank["epochs"]) for rank in ranks]
    yield _metric("minibatch_wait_time", fmean(waits))
    yield _metric("first_minibatch_time", max(one["first_wait_s"] for one in epochs[0]))
    if chosen.format == "recordio":
        yield _metric("pack_time", max(rank["pack"][1] for rank in ranks))
    began, ready = about["started"]
    yield _metric("process_start_time", ready - began)


def facts(
    chosen: Parameters,
    share: Share,
    ranks: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
) -> Mapping[str, str]:
    """What was trained, with what, and which part of the time counts."""
    losses = [fmean(rank["epochs"][at]["losses"][at] for rank in ranks) for at in (0, -1)]
    steps = share.steps(chosen.batch)
    used = steps * chosen.batch * share.ranks
    told = {
        "engine": f"MXNet {about['mxnet']}, Horovod {about['horovod']}, {about['collectives']}",
        "network": chosen.network,
        "device": about["device"],
        "ranks": share.ranks,
        "batch_per_rank": chosen.batch,
        "epochs": chosen.epochs,
        "format": chosen.format,
        "side": chosen.side,
        "readers_per_rank": chosen.readers,
        "images_per_epoch": f"{used} of {len(share.images)}",
        "loss": f"{losses[0]:.3f} at first, {losses[1]:.3f} at last",
        "timed": "the epochs; not the start, the packing and the first pass through the network",
    }
    return {name: str(value) for name, value in told.items()}


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


def _metric(name: str, value: float, unit: str = "s", better: str = "lower") -> Mapping[str, Any]:
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}")
    return {"name": name, "value": round(value, 6), "unit": unit, "better": better}
