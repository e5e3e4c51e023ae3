"""Two ranks train one network by each pipeline, and what they tell is judged."""

import csv
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from burstlab.dataset.writing import scan, write_manifest
from burstlab.training.loop import PHASES
from tests.workflows.trainings.running import CHAINERMN, DEADLINE_S, IMAGES, Place

pytestmark = pytest.mark.requires("chainer", "burstio")


def test_a_training_with_validation(place: Place) -> None:
    record = place.run(validation="25", epochs="3")
    assert record["status"] == "ok", record["reason"] + place.log()
    assert "2 ranks have the same parameters" in (place.cell / "check.log").read_text()

    metrics = {metric["name"]: metric["value"] for metric in record["metrics"]}
    # 24 images, 12 for each rank, in minibatches of 4
    assert metrics["iterations"] == 3 * 3
    images = metrics["throughput"] * metrics["training_time"]
    assert images == pytest.approx(2 * 9 * 4, rel=1e-3)
    assert metrics["second_load_time"] + metrics["first_load_time"] > 0
    assert metrics["first_load_time"] < metrics["first_epoch_load_time"]

    with (place.cell / "operations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * (1 + len(PHASES) + 1)
    for rank in "01":
        for epoch in "123":
            own = [row for row in rows if (row["rank"], row["epoch"]) == (rank, epoch)]
            took = {row["operation"]: float(row["elapsed_s"]) for row in own}
            assert set(took) == {"epoch", *PHASES, "validation"}
            parts = sum(took[phase] for phase in PHASES)
            assert parts == pytest.approx(took["epoch"], abs=1e-5), "no time is in none or in two"
            accuracies = {row["operation"]: row["accuracy"] for row in own if row["accuracy"]}
            assert set(accuracies) == {"epoch", "validation"}
            assert all(0 <= float(value) <= 1 for value in accuracies.values())
            images = {row["operation"]: row["images"] for row in own if row["images"]}
            assert images == {"epoch": "12", "validation": "4"}
    facts = record["workload_facts"]
    for told in ("validation=25", "epochs=3", "patience=300", "generation=1", "copiers=1"):
        assert told in facts["parameters"].split(",")
    refuses_what_is_wrong(place, place.ranks())


def refuses_what_is_wrong(place: Place, ranks: list[dict[str, Any]]) -> None:
    """The verdict on reports that are not those of a good training."""

    def verdict(told: list[dict[str, Any]]) -> tuple[int, str]:
        (place.cell / "ranks.json").write_text(json.dumps(told))
        given = {"PYTHON": sys.executable, "CELL_DIR": str(place.cell), "NODES": "2"}
        done = subprocess.run(
            [CHAINERMN.directory / "check"],
            env={
                **os.environ,
                **{f"BURSTLAB_{name}": value for name, value in given.items()},
                "CHAINERMN_RANKS": "1",
                "CHAINERMN_EPOCHS": "3",
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout.strip()

    assert verdict(ranks)[0] == 0
    who = "rank 1 on localhost"
    assert verdict([ranks[0], {**ranks[1], "sha256": "0" * 64}]) == (
        1,
        f"training wrong: the parameters of {who} are not those of rank 0",
    )
    assert verdict(ranks[:1]) == (1, "training wrong: 1 ranks report, 2 were started")
    short = {**ranks[1], "epochs": ranks[1]["epochs"][:2]}
    assert verdict([ranks[0], short]) == (
        1,
        f"training wrong: {who} saw [12, 12] images in its epochs",
    )
    lost = [{**epoch, "losses": [1.0, float("nan")]} for epoch in ranks[1]["epochs"]]
    wrong = f"training wrong: the loss of {who} is nan"
    assert verdict([ranks[0], {**ranks[1], "epochs": lost}]) == (1, wrong)


@pytest.mark.slow
def test_every_pipeline_trains_the_same_network(place: Place, tmp_path: Any) -> None:
    trained = {}
    for mode in ("direct", "ssd", "paper3", "lazy"):
        own = Place(tmp_path / mode, place.images, CHAINERMN)
        own.root.mkdir()
        record = own.run(mode=mode)
        assert record["status"] == "ok", record["reason"] + own.log()
        trained[mode] = own.ranks()[0]["sha256"]
    assert len(set(trained.values())) == 1, trained


@pytest.mark.slow
@pytest.mark.requires("fuse")
def test_ranks_ask_the_agent_of_a_cell_that_has_one(place: Place) -> None:
    paths = sorted(str(path.relative_to(place.images)) for path in place.images.glob("*/*"))
    write_manifest(
        place.manifest, scan(place.images, paths),
        name="images", source="given", details={}, root=place.images, patterns=("*/*",),
    )  # fmt: skip
    command = [sys.executable, "-m", "burstlab", "run", "--storage", "nodelocal", "--virtual"]
    command += ["--staging", "lazy", "--dataset", str(place.manifest), "--nodes", "2"]
    command += ["--cores-per-node", "1", "--local-dir", str(place.root), "--pfs", str(place.root)]
    command += ["--cell-dir", str(place.cell), *CHAINERMN.labels(mode="lazy")]
    command += [
        "--check",
        str(CHAINERMN.directory / "check"),
        "--",
        str(CHAINERMN.directory / "run"),
    ]
    subprocess.run(command, env=place.environment(), timeout=DEADLINE_S)
    record = place.record()
    assert record["status"] == "ok", record["reason"] + place.log()
    [counted] = record["dataset"]["lazy"].values()
    minibatches = sum(e["iterations"] for rank in place.ranks() for e in rank["epochs"])
    # and a few ahead; engines of the ranks' own would take every file by itself from the agent
    assert minibatches <= counted["minibatches"] < IMAGES["files"]
