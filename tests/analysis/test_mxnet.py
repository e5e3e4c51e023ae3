"""Sawada's figure 4: the time of the epochs, one line for each storage and format."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.records import load
from analysis.registry import Drawing, find
from burstlab.record import CellKey, Metric
from tests.analysis.conftest import Make
from tests.analysis.drawn import outside, words

FACTS = {
    "engine": "MXNet 1.9.1, Horovod 0.28.1, MPI",
    "network": "mobilenet0.25",
    "device": "cpu",
    "batch_per_rank": "16",
    "epochs": "2",
    "side": "64",
    "timed": "the epochs; not the start",
}


def run(make: Make, storage: str, nodes: int, format: str, time_s: float, **fields: Any) -> None:
    """A record of two epochs over 100 images, a quarter of the time spent waiting for them."""
    parameters = {"batch": "16", "format": format, "side": "64"}
    metrics = [("training_time", time_s, "s"), ("minibatch_wait_time", time_s / 4, "s")]
    told = [Metric(name, value, unit, "lower") for name, value, unit in metrics]
    told.append(Metric("throughput", 200 / time_s, "images/s", "higher"))
    place = f"{storage}-none/n{nodes}/{format}"
    key = CellKey(place, "trial", "demo", "mxnet", storage, "none", "images", nodes, parameters)
    given = {"metrics": tuple(told), "workload_facts": FACTS, "cell": key, **fields}
    make(storage, nodes, parameters=parameters, operations=[("epoch", time_s)], **given)


def draw(tmp_path: Path) -> Drawing:
    return find("sawada-4").draw(load([tmp_path]))


def test_a_line_for_each_storage_and_format(make: Make, tmp_path: Path) -> None:
    for format, slower in (("jpeg", 2.0), ("recordio", 1.0)):
        for nodes in (1, 2):
            run(make, "pfs", nodes, format, 10.0 * slower / nodes)
    drawing = draw(tmp_path)
    medians = drawing.data.filter(pl.col("kind") == "median")
    assert medians.select("series", "nodes", "value_s").rows() == [
        ("pfs (emulated), in place, format=jpeg", 1, 20.0),
        ("pfs (emulated), in place, format=jpeg", 2, 10.0),
        ("pfs (emulated), in place, format=recordio", 1, 10.0),
        ("pfs (emulated), in place, format=recordio", 2, 5.0),
    ]
    told = words(drawing.canvas)
    assert "mobilenet0.25 on squares of 64 pixels, 16 images to a minibatch" in told
    assert "Timed: the epochs; not the start." in told
    assert "15 on 1 node, 30 on 2 nodes" in told
    assert "ranks waited for minibatches 25 % of that time" in told
    assert "Horovod MXNet, ResNet-50, ImageNet, batch 128: no numbers" in told
    assert outside(drawing.canvas) == []
    drawn = [line for line in drawing.canvas.axes[0].lines if line.get_linewidth() == 1.8]
    inside = [line.get_linestyle() for line in drawn if line.get_clip_on()]
    assert len(set(inside)) == 2, "one storage, one colour: the lines tell the formats apart"


def test_a_failed_training_is_told(make: Make, tmp_path: Path) -> None:
    reason = "the workload ended with exit status 137: rank 1 on node02 was killed by SIGKILL"
    run(make, "pfs", 2, "jpeg", 1.0, status="failed", reason=reason)
    told = words(draw(tmp_path).canvas)
    assert "rank 1 on node02 was killed by SIGKILL" in told
    assert "no run came to a good end" in told


@pytest.mark.parametrize("nodes", [(1,), (1, 2, 4, 8, 16)])
def test_no_text_leaves_the_page(make: Make, tmp_path: Path, nodes: tuple[int, ...]) -> None:
    for storage in ("pfs", "beeond", "gfarm"):
        for count in nodes:
            for format in ("jpeg", "recordio"):
                run(make, storage, count, format, 1000.0, issues=("host load",))
    assert outside(draw(tmp_path).canvas) == []
