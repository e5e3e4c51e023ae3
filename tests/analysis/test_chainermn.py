"""Serizawa's figures of trainings, and Sato's, from records whose numbers are known."""

from pathlib import Path

import polars as pl
import pytest

from analysis.records import load
from analysis.registry import find
from burstlab.config.experiment import load_experiment
from burstlab.errors import ConfigurationError
from burstlab.record import CellKey, Metric
from tests.analysis.conftest import Make
from tests.analysis.drawn import outside, words

FIGURES = [f"serizawa-{n}" for n in ("7", "8", "9", "10", "11", "lazy-epochs", "lazy-table")]
FIGURES += [f"serizawa-table-{n}" for n in ("4", "a1", "a2", "a3")] + ["sato-13"]
TIMES_S = {"ssd": 40.0, "direct": 80.0, "paper3": 60.0, "lazy": 44.0}
PHASES_S = {"other": 1.0, "load": 4.0, "forward": 2.0, "backward": 3.0, "allreduce": 10.0}
HEADER = "operation,start_s,elapsed_s,host,status,rank,epoch,accuracy"
RANKS, EPOCHS, ITERATIONS = 2, 3, 30
CLOCK_BEHIND_S = -7  # of each rank's host, as if there were one for each


def training(
    make: Make,
    mode: str,
    nodes: int,
    repeat: int,
    storage: str = "",
    workload: str = "chainermn",
    staging: str = "",
    validated: bool = True,
    **more: str,
) -> Path:
    """A record: every phase takes as many seconds as above, times the repeat, in each epoch."""
    storage = storage or ("nodelocal" if mode == "ssd" else "pfs")
    staging = staging or ("eager" if storage != "pfs" else "none")
    parameters = {"mode": mode, "batch": "8", "ranks": str(RANKS), "epochs": str(EPOCHS), **more}
    dataset = {"name": "imagenet-test", "source": "synthetic", "files": 12, "bytes": 1_572_864}
    if staging == "eager":
        dataset["staged"] = {"method": "shard" if storage == "gfarm" else "copy"}
    told = {"training_time": TIMES_S[mode] / nodes * repeat, "iterations": ITERATIONS / nodes}
    told |= {"first_load_time": 9.0, "second_load_time": 0.5, "first_epoch_load_time": 10.0}
    cell = CellKey(
        id=f"{mode}-{repeat}",
        experiment="trial",
        scale="demo",
        workload=workload,
        storage=storage,
        staging=staging,
        dataset="imagenet-test",
        nodes=nodes,
        parameters=parameters,
        repeat=repeat,
    )
    path = make(
        storage,
        nodes,
        repeat,
        staging=f"{mode}-{staging}",
        parameters=parameters,
        cell=cell,
        metrics=tuple(Metric(name, value, "s", "lower") for name, value in told.items()),
        workload_facts={"engine": "Chainer 7.8.1", "network": "small"},
        dataset=dataset,
    )
    lines = [HEADER]
    for rank in range(RANKS * nodes):
        for epoch in range(1, EPOCHS + 1):
            start = 1000 + 50 * epoch + CLOCK_BEHIND_S * rank
            own = f"node01,0,{rank},{epoch}"
            lines.append(f"epoch,{start},{20 * repeat},{own},{0.1 * epoch + 0.02 * rank}")
            lines += [f"{name},{start},{s * repeat},{own}," for name, s in PHASES_S.items()]
            if validated:
                lines.append(f"validation,{start + 20 * repeat},5,{own},{0.05 * epoch}")
    (path.parent / "operations.csv").write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def results(make: Make, tmp_path: Path) -> Path:
    for mode in TIMES_S:
        for nodes in (1, 2):
            for repeat in (1, 2, 3):
                training(make, mode, nodes, repeat)
    return tmp_path / "results"


def data(name: str, results: Path) -> pl.DataFrame:
    drawing = find(name).draw(load([results]))
    assert outside(drawing.canvas) == []
    return drawing.data


@pytest.mark.slow
def test_time_against_nodes_and_with_staging(results: Path) -> None:
    plain, staged = data("serizawa-7", results), data("serizawa-8", results)
    keys = ["mode", "number"]
    both = plain.join(staged, on=keys, suffix="_staged").sort(keys)
    for row in both.iter_rows(named=True):
        assert row["median"] == pytest.approx(2 * TIMES_S[row["mode"]] / row["number"])
        # these records have a span stage_in, whatever their staging: 0.5 s + repeat / 10
        assert row["median_staged"] - row["median"] == pytest.approx(0.7)
    assert len(both) == 8


def test_gfarm_is_a_series_of_its_own(results: Path, make: Make) -> None:
    training(make, "direct", 2, 4, storage="gfarm")
    points = data("serizawa-7", results)
    assert points.filter(pl.col("mode") == "direct")["n"].to_list() == [3, 3]
    assert points.filter(pl.col("mode") == "gfarm").select("number", "n").rows() == [(2, 1)]


def test_figure_8_tells_how_data_were_staged(results: Path, make: Make) -> None:
    training(make, "direct", 2, 4, storage="gfarm")
    drawing = find("serizawa-8").draw(load([results]))
    assert "paper is the paper's own: gfarm: shard, ssd: copy." in words(drawing.canvas)


@pytest.mark.parametrize(
    ("staging", "whose"),
    [("lazy", "all ranks of a node ask its one agent"), ("none", "each rank has a cache")],
)
def test_whose_cache_lazy_filled_is_told(
    staging: str, whose: str, make: Make, tmp_path: Path
) -> None:
    training(make, "lazy", 1, 1, staging=staging)
    drawing = find("serizawa-lazy-epochs").draw(load([tmp_path / "results"]))
    assert set(drawing.data["n"]) == {1}
    assert whose in words(drawing.canvas)


@pytest.mark.parametrize("name", FIGURES)
def test_two_frameworks_are_not_compared(name: str, make: Make, tmp_path: Path) -> None:
    training(make, "direct", 1, 1)
    training(make, "lazy", 1, 1, workload="ddp")
    told = "^trainings: workload is chainermn and ddp: .* give each a scale of its own$"
    with pytest.raises(ConfigurationError, match=told):
        find(name).draw(load([tmp_path / "results"]))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"storage": "nodelocal"}, "lazy on 1 node: storage is nodelocal and pfs: "),
        ({"staging": "lazy"}, "lazy on 1 node: staging is lazy and none: "),
        ({"copiers": "4"}, "lazy on 1 node: parameters is batch=8,copiers=4,"),
    ],
)
def test_no_median_is_of_unlike_runs(
    other: dict[str, str], told: str, make: Make, tmp_path: Path
) -> None:
    training(make, "lazy", 1, 1)
    training(make, "lazy", 1, 2, **other)
    with pytest.raises(ConfigurationError, match=told):
        find("serizawa-7").draw(load([tmp_path / "results"]))


def test_pytorchs_trainings_are_drawn_too(make: Make, tmp_path: Path) -> None:
    training(make, "lazy", 1, 1, workload="ddp")
    assert data("serizawa-7", tmp_path / "results").select("mode", "n").rows() == [("lazy", 1)]


@pytest.mark.parametrize("number", ["9", "10", "11", "lazy-epochs"])
def test_parts_of_each_epoch_on_the_most_nodes(number: str, results: Path) -> None:
    parts = data(f"serizawa-{number}", results)
    assert parts["epoch"].to_list() == [1] * 5 + [2] * 5 + [3] * 5
    assert set(parts["n"]) == {3}
    # 4 ranks on 2 nodes; the mean of repeats 1 to 3 is twice the first
    expected = {name: 4 * 2 * seconds for name, seconds in PHASES_S.items()}
    first = dict(parts.filter(pl.col("epoch") == 1).select("operation", "mean_s").iter_rows())
    assert first == pytest.approx(expected)
    load_share = parts.filter(pl.col("operation") == "load")["share_percent"].to_list()
    assert load_share == pytest.approx([20.0] * 3)


def test_first_loads_beside_the_papers(results: Path) -> None:
    drawing = find("serizawa-table-4").draw(load([results]))
    rows = {row["mode"]: row for row in drawing.data.to_dicts()}
    assert set(rows) == set(TIMES_S)
    assert rows["lazy"]["first_percent"] == pytest.approx(90.0)
    assert rows["lazy"]["second_percent"] == pytest.approx(5.0)
    told = words(drawing.canvas)
    assert "334.55 289.92 683.31" in told and "360.047 293.78 684.94" in told
    assert "2 nodes, 2 ranks on each" in told


def test_bandwidth_of_a_node_and_of_all(results: Path) -> None:
    each, everywhere = data("serizawa-table-a1", results), data("serizawa-table-a2", results)
    minibatch_mib = 8 * 1_572_864 / 12 / 2**20  # of the data set in tests/analysis/conftest.py
    on_two = each.filter(pl.col("nodes") == 2).row(0, named=True)
    assert on_two["iterations"] == 15
    assert on_two["bandwidth"] == pytest.approx(minibatch_mib * RANKS * 15 / 40.0)
    on_two = everywhere.filter(pl.col("nodes") == 2).row(0, named=True)
    assert on_two["bandwidth"] == pytest.approx(minibatch_mib * 2 * RANKS * 15 / 80.0)
    drawing = find("serizawa-table-a3").draw(load([results]))
    assert "15878.37 9009.86 7363.48 6585.40 3008.96" in words(drawing.canvas)


def test_accuracy_against_time(make: Make, tmp_path: Path) -> None:
    training(make, "direct", 1, 1)
    curves = data("sato-13", tmp_path / "results")
    trained = curves.filter(pl.col("curve") == "epoch")
    assert trained["time_s"].to_list() == pytest.approx([20.0, 70.0, 120.0])
    assert trained["accuracy_percent"].to_list() == pytest.approx([11.0, 21.0, 31.0])
    validated = curves.filter(pl.col("curve") == "validation")
    assert validated["time_s"].to_list() == pytest.approx([25.0, 75.0, 125.0])
    assert validated["accuracy_percent"].to_list() == pytest.approx([5.0, 10.0, 15.0])


def test_an_accuracy_is_that_of_all_images(make: Make, tmp_path: Path) -> None:
    table = training(make, "direct", 1, 1).parent / "operations.csv"
    header, *rows = table.read_text().splitlines()
    images = {"0": "30", "1": "10"}
    told = [f"{header},images", *(f"{row},{images[row.split(',')[5]]}" for row in rows)]
    table.write_text("\n".join(told))
    curves = data("sato-13", tmp_path / "results").filter(pl.col("curve") == "epoch")
    assert curves["accuracy_percent"].to_list() == pytest.approx([10.5, 20.5, 30.5])


def test_accuracy_of_serizawas_trainings(make: Make, tmp_path: Path) -> None:
    assert "sato-13" in load_experiment("serizawa").figures_at("chainermn")
    for mode in TIMES_S:
        for nodes in (1, 2):
            training(make, mode, nodes, 1, validated=False)
    drawing = find("sato-13").draw(load([tmp_path / "results"]))
    assert outside(drawing.canvas) == []
    assert drawing.data["mode"].unique().sort().to_list() == sorted(TIMES_S)
    assert set(drawing.data["ranks"]) == {2 * RANKS}, "those on the most nodes"
    assert set(drawing.data["curve"]) == {"epoch"}
    told = words(drawing.canvas)
    assert "no images were held back" in told
    assert all(name in told for name in ("paper3: the paper's", "lazy: prefetched"))


@pytest.mark.parametrize("name", FIGURES)
def test_without_any_run_a_figure_says_why(name: str, make: Make, tmp_path: Path) -> None:
    for mode in TIMES_S:
        path = training(make, mode, 1, 1)
        text = path.read_text().replace('"status": "ok"', '"status": "failed"')
        path.write_text(text.replace('"reason": ""', '"reason": "the disk is full"'))
    drawing = find(name).draw(load([tmp_path / "results"]))
    assert "the disk is full" in words(drawing.canvas)
    assert outside(drawing.canvas) == []
