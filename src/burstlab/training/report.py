"""What rank 0 tells of a training: metrics, operations, facts, and what the verdict looks at."""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from burstlab.training.loop import PHASES
from burstlab.training.parameters import Parameters

RANKS = "ranks.json"
COLUMNS = ("operation", "start_s", "elapsed_s", "host", "status", "rank", "epoch", "accuracy")

Rank = Mapping[str, Any]


def write_report(
    cell: Path, chosen: Parameters, ranks: Sequence[Rank], about: Mapping[str, Any]
) -> None:
    """Write metrics.json, operations.csv, facts.json and ranks.json into the cell's directory."""
    (cell / RANKS).write_text(json.dumps(ranks, indent=1))
    (cell / "metrics.json").write_text(json.dumps(list(metrics(ranks, about)), indent=1))
    (cell / "facts.json").write_text(json.dumps(facts(chosen, ranks, about), indent=1))
    with (cell / "operations.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(operations(ranks))


def metrics(ranks: Sequence[Rank], about: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Times of the slowest rank; loads are the sums of all ranks, as in Serizawa's table 4."""
    total_s = max(_end(rank["epochs"][-1]) for rank in ranks)
    total_s -= min(rank["epochs"][0]["start_s"] for rank in ranks)
    images = sum(epoch["images"] for rank in ranks for epoch in rank["epochs"])
    yield _metric("training_time", total_s)
    yield _metric("throughput", images / total_s, "images/s", "higher")
    iterations = sum(epoch["iterations"] for epoch in ranks[0]["epochs"])
    yield _metric("iterations", iterations, "1")
    first = [rank["epochs"][0] for rank in ranks]
    for number, name in enumerate(("first", "second")):
        loads = [epoch["first_loads_s"] for epoch in first]
        if all(len(load) > number for load in loads):
            yield _metric(f"{name}_load_time", sum(load[number] for load in loads))
    yield _metric("first_epoch_load_time", sum(epoch["phases_s"]["load"] for epoch in first))
    last = [rank["epochs"][-1] for rank in ranks]
    trained = 100 * _share(last, "right", "images")
    yield _metric("training_accuracy", trained, "%", "higher")
    if last[0]["validated"]:
        validated = 100 * _share(last, "validated_right", "validated")
        yield _metric("validation_accuracy", validated, "%", "higher")
    began, ready = about["started"]
    yield _metric("process_start_time", ready - began)


def facts(chosen: Parameters, ranks: Sequence[Rank], about: Mapping[str, Any]) -> Mapping[str, str]:
    """What was trained, with what, and which part of the time counts."""
    losses = [fmean(rank["epochs"][at]["losses"][at] for rank in ranks) for at in (0, -1)]
    told = {
        "engine": about["engine"],
        "collectives": about["collectives"],
        "device": about["device"],
        "network": chosen.network,
        "mode": chosen.mode,
        "ranks": len(ranks),
        "batch_per_rank": chosen.batch,
        "epochs": chosen.epochs,
        "schedule_epochs": chosen.schedule,
        "side": chosen.side,
        "images": about["images"],
        "images_per_rank": about["shard"],
        "held_back": f"{chosen.validation} % of the images, for validation",
        "loss": f"{losses[0]:.3f} at first, {losses[1]:.3f} at last",
        "timed": "from the opening of the pipeline; not the start of Python and of the network",
    }
    return {name: str(value) for name, value in told.items()}


def operations(ranks: Sequence[Rank]) -> Iterable[Sequence[object]]:
    """For each rank and epoch a row for the whole, and one for each phase: the sum of its times."""
    for rank in ranks:
        for number, epoch in enumerate(rank["epochs"], 1):
            own = (rank["host"], 0, rank["rank"], number)
            start = f"{epoch['start_s']:.6f}"
            elapsed_s = sum(epoch["phases_s"].values())
            right = f"{_share([epoch], 'right', 'images'):.6f}"
            yield ("epoch", start, f"{elapsed_s:.6f}", *own, right)
            for phase in PHASES:
                yield (phase, start, f"{epoch['phases_s'][phase]:.6f}", *own, "")
            if epoch["validated"]:
                start = f"{epoch['validation_start_s']:.6f}"
                right = f"{_share([epoch], 'validated_right', 'validated'):.6f}"
                yield ("validation", start, f"{epoch['validation_s']:.6f}", *own, right)


def _end(epoch: Mapping[str, Any]) -> float:
    trained_s: float = epoch["start_s"] + sum(epoch["phases_s"].values())
    return trained_s + float(epoch["validation_s"])


def _share(epochs: Sequence[Mapping[str, Any]], some: str, everything: str) -> float:
    whole: int = sum(epoch[everything] for epoch in epochs)
    return float(sum(epoch[some] for epoch in epochs)) / whole


def _metric(name: str, value: float, unit: str = "s", better: str = "lower") -> Mapping[str, Any]:
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}")
    return {"name": name, "value": round(value, 6), "unit": unit, "better": better}
