"""Serizawa's figures from records whose numbers are known, and from none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.records import load
from analysis.registry import find
from burstlab.record import CellKey, Metric
from tests.analysis.drawn import outside, words

FIGURES = [f"serizawa-{number}" for number in ("4", "5", "6", "table-2", "table-3")]
TIMES = {"ssd": 1.0, "direct": 9.0, "paper3": 8.0, "lazy": 1.1}  # of each minibatch but the first
FIRST = {"ssd": 1.0, "direct": 1.0, "paper3": 7.5, "lazy": 0.5}
LOADED = 20

Make = Callable[..., Path]


@pytest.fixture
def results(make: Make, tmp_path: Path) -> Path:
    """Three repeats of every pipeline, of paper3 with more copy processes, and of staging."""
    for repeat in (1, 2, 3):
        for mode in TIMES:
            for generation in (2, 4):
                prefetch(make, mode, repeat, generation=generation)
        prefetch(make, "paper3", repeat, generation=2, copiers=8)
        for nodes in (1, 2):
            for method, time in (("paper", 20.0), ("copy", 5.0)):
                staged(make, method, nodes, repeat, time * nodes + repeat)
    return tmp_path / "results"


def prefetch(make: Make, mode: str, repeat: int, digest: str = "ab", **parameters: int) -> Path:
    chosen = {"mode": mode, "minibatches": str(LOADED)}
    chosen |= {name: str(value) for name, value in parameters.items()}
    each = TIMES[mode] * repeat / max(1, parameters.get("copiers", 2) / 2)
    times = [FIRST[mode], *[each] * (LOADED - 1)]
    told = {"first_minibatch_time": times[0], "minibatches_time": sum(times)}
    return written(
        make,
        "prefetch",
        "nodelocal" if mode == "ssd" else "pfs",
        1,
        repeat,
        chosen,
        told,
        operations=[("minibatch", time) for time in times],
        workload_facts={"last_minibatch_sha256": digest},
    )


def staged(make: Make, method: str, nodes: int, repeat: int, time: float) -> None:
    written(make, "staging", "nodelocal", nodes, repeat, {"method": method}, {"staging_time": time})


def written(
    make: Make, workload: str, storage: str, nodes: int, repeat: int, parameters: dict[str, str],
    told: dict[str, float], **fields: Any,
) -> Path:  # fmt: skip
    staging = "eager" if parameters.get("mode") == "ssd" else "none"
    cell = CellKey(
        id=f"{workload}-{repeat}", experiment="trial", scale="demo", workload=workload,
        storage=storage, staging=staging, dataset="imagenet-test", nodes=nodes,
        parameters=parameters, repeat=repeat,
    )  # fmt: skip
    metrics = tuple(Metric(name, value, "s", "lower") for name, value in told.items())
    return make(
        storage, nodes, repeat, staging=f"{workload}-{staging}", parameters=parameters,
        cell=cell, metrics=metrics, **fields,
    )  # fmt: skip


def data(name: str, results: Path) -> pl.DataFrame:
    drawing = find(name).draw(load([results]))
    assert outside(drawing.canvas) == []
    return drawing.data


def test_generation_processes(results: Path) -> None:
    points = data("serizawa-4", results)
    assert set(points["number"]) == {2, 4}
    assert set(points["n"]) == {3}, "paper3 with more copy processes is not in it"
    medians = dict(points.filter(pl.col("number") == 2).select("mode", "median").iter_rows())
    assert medians == pytest.approx(
        {mode: FIRST[mode] + (LOADED - 1) * 2 * TIMES[mode] for mode in TIMES}
    )


def test_progress_and_where_the_lines_cross(results: Path) -> None:
    drawing = find("serizawa-5").draw(load([results]))
    points = drawing.data.filter(pl.col("mode") == "direct").sort("minibatch")
    assert points["minibatch"].to_list() == list(range(1, LOADED + 1))
    assert points["median"].to_list() == pytest.approx([1 + 18 * i for i in range(LOADED)])
    # 1 + 18 i < 7.5 + 16 i as long as i <= 3
    assert "direct is ahead of paper3 for the last time at minibatch 4" in words(drawing.canvas)
    assert outside(drawing.canvas) == []


def test_prefetch_processes(results: Path) -> None:
    points = data("serizawa-6", results)
    assert points["number"].to_list() == [2, 8]
    assert set(points["mode"]) == {"paper3"}
    assert points["median"].to_list() == pytest.approx([7.5 + 19 * 16, 7.5 + 19 * 4])


def test_first_minibatch_beside_the_papers(results: Path) -> None:
    drawing = find("serizawa-table-2").draw(load([results]))
    rows = {row["mode"]: row for row in drawing.data.to_dicts()}
    assert rows["paper3"]["first_s"] == 7.5
    assert rows["paper3"]["share_percent"] == pytest.approx(100 * 7.5 / (7.5 + 19 * 16))
    assert rows["paper3"]["paper_total_s"] == 400.88
    assert rows["lazy"]["paper_total_s"] is None
    told = words(drawing.canvas)
    assert "400.88" in told
    assert "metadata_latency_ms 1" in told
    assert "paper3/direct, first minibatch: 7.50 (paper 2.12)" in told.replace("\n", " ")
    assert "same last minibatch" in told
    assert outside(drawing.canvas) == []


def test_minibatches_that_differ_are_told(make: Make, results: Path) -> None:
    prefetch(make, "lazy", 4, digest="cd", generation=2)
    assert "last minibatches differ" in words(find("serizawa-4").draw(load([results])).canvas)


def test_staging(results: Path) -> None:
    drawing = find("serizawa-table-3").draw(load([results]))
    medians = {(r["method"], r["nodes"]): r["median"] for r in drawing.data.to_dicts()}
    assert medians == {
        ("paper", 1): 22.0, ("paper", 2): 42.0, ("copy", 1): 7.0, ("copy", 2): 12.0,
    }  # fmt: skip
    assert "1749.275" in words(drawing.canvas)
    assert outside(drawing.canvas) == []


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_to_draw(name: str, make: Make, tmp_path: Path) -> None:
    make("pfs")
    assert outside(find(name).draw(load([tmp_path / "results"])).canvas) == []


@pytest.mark.parametrize("name", FIGURES)
def test_what_failed_is_told(name: str, make: Make, tmp_path: Path) -> None:
    path = staged if name == "serizawa-table-3" else None
    if path:
        staged(make, "paper", 1, 1, 5.0)
        record = next((tmp_path / "results").rglob("record.json"))
    else:
        record = prefetch(make, "paper3", 1, generation=2)
    content = json.loads(record.read_text())
    content |= {"status": "failed", "reason": "the disk is full", "metrics": [], "operations": None}
    record.write_text(json.dumps(content))
    drawing = find(name).draw(load([tmp_path / "results"]))
    assert "the disk is full" in words(drawing.canvas)
    assert outside(drawing.canvas) == []
