"""What rank 0 tells of a training: metrics, operations, facts, and what the verdict looks at."""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from burstlab.training.loop import PHASES
from burstlab.training.parameters import AnyParameters, Parameters

RANKS = "ranks.json"
COLUMNS = ("operation", "start_s", "elapsed_s", "host", "status", "rank", "epoch", "accuracy",
           "images")  # fmt: skip

Rank = Mapping[str, Any]


def write_report(
    cell: Path, chosen: Parameters, ranks: Sequence[Rank], about: Mapping[str, Any]
) -> None:
    """Write metrics.json, operations.csv, facts.json and ranks.json into the cell's directory."""
    rows = [COLUMNS, *operations(ranks)]
    write_files(cell, ranks, metrics(ranks, about), facts(chosen, ranks, about), rows)


def write_files(
    cell: Path,
    ranks: Sequence[Rank],
    metrics: Iterable[Mapping[str, Any]],
    facts: Mapping[str, object],
    operations: Iterable[Sequence[object]],
) -> None:
    """The same of any training; the first row of ``operations`` has the columns' names."""
    told = {name: str(value) for name, value in facts.items()}
    for name, content in ((RANKS, ranks), ("metrics.json", list(metrics)), ("facts.json", told)):
        (cell / name).write_text(json.dumps(content, indent=1))
    with (cell / "operations.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(operations)


def metrics(ranks: Sequence[Rank], about: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Times of the slowest rank; loads are the sums of all ranks, as in Serizawa's table 4."""
    total_s = max(_took(rank["epochs"]) for rank in ranks)
    images = sum(epoch["images"] for rank in ranks for epoch in rank["epochs"])
    yield metric("training_time", total_s)
    yield metric("throughput", images / total_s, "images/s", "higher")
    iterations = sum(epoch["iterations"] for epoch in ranks[0]["epochs"])
    yield metric("iterations", iterations, "1")
    first = [rank["epochs"][0] for rank in ranks]
    for number, name in enumerate(("first", "second")):
        loads = [epoch["first_loads_s"] for epoch in first]
        if all(len(load) > number for load in loads):
            yield metric(f"{name}_load_time", sum(load[number] for load in loads))
    yield metric("first_epoch_load_time", sum(epoch["phases_s"]["load"] for epoch in first))
    last = [rank["epochs"][-1] for rank in ranks]
    trained = 100 * _share(last, "right", "images")
    yield metric("training_accuracy", trained, "%", "higher")
    if last[0]["validated"]:
        validated = 100 * _share(last, "validated_right", "validated")
        yield metric("validation_accuracy", validated, "%", "higher")
    yield process_start(about)


def facts(
    chosen: Parameters, ranks: Sequence[Rank], about: Mapping[str, Any]
) -> Mapping[str, object]:
    """What was trained, with what, and which part of the time counts."""
    return {
        **common_facts(chosen, ranks, about),
        "collectives": about["collectives"],
        "images": about["images"],
        "images_per_rank": about["shard"],
        "timed": "from the opening of the pipeline; not the start of Python and of the network",
    }


def common_facts(
    chosen: AnyParameters, ranks: Sequence[Rank], about: Mapping[str, Any]
) -> Mapping[str, object]:
    """Of any training; the losses are means of the first and of the last minibatch's.

    All parameters are told: some may come from the environment that the campaign was started in.
    """
    losses = [fmean(rank["epochs"][at]["losses"][at] for rank in ranks) for at in (0, -1)]
    return {
        "parameters": ",".join(f"{name}={value}" for name, value in asdict(chosen).items()),
        "engine": about["engine"],
        "device": about["device"],
        "network": chosen.network,
        "ranks": len(ranks),
        "batch_per_rank": chosen.batch,
        "epochs": chosen.epochs,
        "side": chosen.side,
        "loss": f"{losses[0]:.3f} at first, {losses[1]:.3f} at last",
    }


def operations(ranks: Sequence[Rank]) -> Iterable[Sequence[object]]:
    """For each rank and epoch a row for the whole, and one for each phase: the sum of its times."""
    for rank in ranks:
        for number, epoch in enumerate(rank["epochs"], 1):
            own = (rank["host"], 0, rank["rank"], number)
            start = f"{epoch['start_s']:.6f}"
            elapsed_s = sum(epoch["phases_s"].values())
            right = f"{_share([epoch], 'right', 'images'):.6f}"
            yield ("epoch", start, f"{elapsed_s:.6f}", *own, right, epoch["images"])
            for phase in PHASES:
                yield (phase, start, f"{epoch['phases_s'][phase]:.6f}", *own, "", "")
            if epoch["validated"]:
                start = f"{epoch['validation_start_s']:.6f}"
                right = f"{_share([epoch], 'validated_right', 'validated'):.6f}"
                took = f"{epoch['validation_s']:.6f}"
                yield ("validation", start, took, *own, right, epoch["validated"])


def _took(epochs: Sequence[Mapping[str, Any]]) -> float:
    """All epochs of a rank [s], by its own clock: those of two hosts differ. All begin at once."""
    first, last = epochs[0], epochs[-1]
    last_s = sum(last["phases_s"].values()) + last["validation_s"]
    return float(last["start_s"] + last_s - first["start_s"])


def _share(epochs: Sequence[Mapping[str, Any]], some: str, everything: str) -> float:
    whole: int = sum(epoch[everything] for epoch in epochs)
    return float(sum(epoch[some] for epoch in epochs)) / whole


def metric(name: str, value: float, unit: str = "s", better: str = "lower") -> Mapping[str, Any]:
    """As metrics.json has it. Raises ValueError for what is no finite number."""
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}")
    return {"name": name, "value": round(value, 6), "unit": unit, "better": better}


def process_start(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """From the launcher's start to rank 0's first line [s]."""
    began, ready = about["started"]
    return metric("process_start_time", ready - began)
