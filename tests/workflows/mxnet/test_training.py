"""Two ranks train one network, from record files or JPEG files, and what they tell is judged."""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflows.trainings.running import DEADLINE_S, MXNET, Place

pytestmark = pytest.mark.requires("mxnet")

TIMES = ("training_time", "epoch_1_time", "epoch_2_time", "minibatch_wait_time")
TIMES += ("first_minibatch_time", "process_start_time")


@pytest.mark.parametrize(
    ("format", "collectives", "told"), [("jpeg", "gloo", "gloo"), ("recordio", "mpi", "MPI")]
)
@pytest.mark.slow
def test_a_training_comes_to_a_good_end(
    place: Place, format: str, collectives: str, told: str
) -> None:
    record = place.run(format=format, collectives=collectives)
    assert record["status"] == "ok", record["reason"] + place.log()
    assert "2 ranks have the same parameters" in (place.cell / "check.log").read_text()

    metrics = {metric["name"]: metric for metric in record["metrics"]}
    packed = ("pack_time",) if format == "recordio" else ()
    assert sorted(metrics) == sorted([*TIMES, *packed, "throughput"])
    for name in (*TIMES, *packed):
        assert (metrics[name]["unit"], metrics[name]["better"]) == ("s", "lower")
    throughput, seconds = metrics["throughput"], metrics["training_time"]["value"]
    assert (throughput["unit"], throughput["better"]) == ("images/s", "higher")
    assert math.isclose(throughput["value"] * seconds, 2 * 32, rel_tol=1e-3), "2 epochs, all images"
    epochs = metrics["epoch_1_time"]["value"] + metrics["epoch_2_time"]["value"]
    assert math.isclose(epochs, seconds, abs_tol=1e-5), "neither start nor packing is in it"

    facts = record["workload_facts"]
    assert facts["engine"] == f"MXNet 1.9.1, Horovod 0.28.1, {told}"
    assert facts["images_per_epoch"] == "32 of 32"
    for told in (f"format={format}", f"collectives={collectives}", "readers=1", "side=32"):
        assert told in facts["parameters"].split(",")
    with (place.cell / "operations.csv").open(newline="") as file:
        rows = [(row["operation"], row["rank"], row["status"]) for row in csv.DictReader(file)]
    once = [("pack", "0"), ("pack", "1")] if format == "recordio" else []
    done = [*once, *[("epoch", rank) for rank in "0011"]]
    assert sorted(rows) == sorted((operation, rank, "0") for operation, rank in done)

    ranks = json.loads((place.cell / "ranks.json").read_text())
    refuses_other_parameters(place, ranks)


@pytest.mark.slow
def test_what_comes_before_the_epochs_is_not_timed(place: Place) -> None:
    """Neither the packing nor the first pass through the network, however slow they are."""
    command = place.command(format="recordio", epochs="1")[:-1]
    command += [sys.executable, "-B", str(Path(__file__).with_name("slow_start.py"))]
    subprocess.run(command, env=place.environment(), timeout=DEADLINE_S)
    record = place.record()
    assert record["status"] == "ok", record["reason"] + place.log()
    epochs = [epoch for rank in place.ranks() for epoch in rank["epochs"]]
    for rank, epoch in enumerate(epochs):
        ended = json.loads((place.cell / f"ended-{rank}.json").read_text())
        assert sorted(ended) == ["_gradients", "_pack"]
        assert epoch["start_s"] >= max(ended.values())
    metrics = {metric["name"]: metric["value"] for metric in record["metrics"]}
    slowest_s = max(epoch["elapsed_s"] for epoch in epochs)
    assert metrics["training_time"] == pytest.approx(slowest_s, abs=1e-5)


@pytest.mark.slow
def test_gloo_and_mpi_train_the_same_network(place: Place) -> None:
    """On two ranks, where a sum has one order only."""
    trained = set()
    for collectives in ("gloo", "mpi"):
        record = place.run(collectives=collectives, epochs="1")
        assert record["status"] == "ok", record["reason"] + place.log()
        trained |= {rank["sha256"] for rank in place.ranks()}
    assert len(trained) == 1


def refuses_other_parameters(place: Place, ranks: list[dict[str, object]]) -> None:
    """The verdict on reports that are not those of a good training."""

    def verdict(told: list[dict[str, object]]) -> tuple[int, str]:
        (place.cell / "ranks.json").write_text(json.dumps(told))
        done = subprocess.run(
            [MXNET.directory / "check"],
            env={
                **place.environment(),
                "BURSTLAB_PYTHON": sys.executable,
                "BURSTLAB_CELL_DIR": str(place.cell),
                "BURSTLAB_NODES": "2",
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout.strip()

    assert verdict(ranks)[0] == 0
    assert verdict([ranks[0], {**ranks[1], "sha256": "0" * 64}]) == (
        1,
        "training wrong: the parameters of rank 1 on localhost are not those of rank 0",
    )
    assert verdict(ranks[:1]) == (1, "training wrong: 1 ranks report, 2 were started")
