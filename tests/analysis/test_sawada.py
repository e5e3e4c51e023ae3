"""Sawada's figures: the data beside a figure are those of the records, and nothing is hidden."""

import re
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from analysis.records import load
from analysis.registry import Drawing, find
from tests.analysis.conftest import COMMANDS, Make
from tests.analysis.drawn import outside, words

ALL = ("sawada-1", "sawada-2", "sawada-3")


def draw(name: str, tmp_path: Path) -> Drawing:
    return find(name).draw(load([tmp_path]))


def test_figure_1_shows_median_interval_and_runs_of_each_series(make: Make, tmp_path: Path) -> None:
    for repeat, time in enumerate((10.0, 12.0, 11.0), start=1):
        make("pfs", 1, repeat, workflow_time=time)
    make("pfs", 2, workflow_time=6.5)
    make("gfarm", 1, staging="eager", workflow_time=8.0)
    drawing = draw("sawada-1", tmp_path)
    medians = drawing.data.filter(pl.col("kind") == "median")
    assert medians.select("series", "nodes", "value_s", "low_s", "high_s", "n").rows() == [
        ("pfs (emulated), in place", 1, 11.0, 10.0, 12.0, 3),
        ("pfs (emulated), in place", 2, 6.5, None, None, 1),
        ("gfarm, staged in before", 1, 8.0, None, None, 1),
    ]
    runs = drawing.data.filter(pl.col("kind") == "run")
    assert sorted(runs["value_s"]) == [6.5, 8.0, 10.0, 11.0, 12.0]
    told = words(drawing.canvas)
    assert "11.0 s" in told
    assert "[10.0, 12.0] n = 3" in told
    assert "[no interval] n = 1" in told
    assert "pfs (emulated), in place" in told


def test_figure_1_of_a_single_run(make: Make, tmp_path: Path) -> None:
    make("gfarm", workflow_time=8.0)
    drawing = draw("sawada-1", tmp_path)
    assert drawing.data["value_s"].to_list() == [8.0, 8.0]
    assert [tick.get_text() for tick in drawing.canvas.axes[0].get_xticklabels()] == ["1"]


def test_skipped_and_failed_cells_are_told_on_the_figure_and_in_its_data(
    make: Make, tmp_path: Path
) -> None:
    make("pfs")
    make("pfs", repeat=2, status="failed", reason="the check refuses the result")
    for repeat in (1, 2):
        make("gfarm", 2, repeat, status="skipped", reason="it needs separate hosts")
    drawing = draw("sawada-1", tmp_path)
    told = words(drawing.canvas)
    assert "gfarm, in place, 2 nodes (2 cells): it needs separate hosts." in told
    assert "pfs (emulated), in place, 1 node (1 cell): the check refuses the result." in told
    gone = drawing.data.filter(pl.col("reason").is_not_null())
    assert gone.select("kind", "storage", "nodes", "repeat").rows() == [
        ("failed", "pfs", 1, 2),
        ("skipped", "gfarm", 2, 1),
        ("skipped", "gfarm", 2, 2),
    ]


def markers(figure: Figure) -> dict[str, object]:
    """Fill of the marker of each median on figure 1, by its y."""
    lines = [line for line in figure.axes[0].lines if line.get_markersize() == 7]
    inside = [line for line in lines if line.get_clip_on()]
    return {str(line.get_ydata()[0]): line.get_markerfacecolor() for line in inside}  # type: ignore[index]


def test_points_with_issues_are_open_and_the_issues_told(make: Make, tmp_path: Path) -> None:
    make("pfs", 1, workflow_time=10.0)
    make("pfs", 2, workflow_time=6.0, issues=("host load 1.5 before the start",))
    drawing = draw("sawada-1", tmp_path)
    fills = markers(drawing.canvas)
    assert fills["6.0"] == "white"
    assert fills["10.0"] != "white"
    told = words(drawing.canvas)
    assert "in 1 of 2 runs: host load 1.5 before the start (1x)." in told
    assert "open: runs have issues (below)" in told


def test_no_open_point_is_explained_where_there_is_none(make: Make, tmp_path: Path) -> None:
    make("pfs")
    assert "open:" not in words(draw("sawada-1", tmp_path).canvas)


@pytest.mark.parametrize("name", ALL)
def test_an_experiment_without_any_result_says_so(make: Make, tmp_path: Path, name: str) -> None:
    make("pfs", status="failed", reason="gfmd died")
    make("gfarm", status="skipped", reason="there is no gfmd on this machine")
    drawing = draw(name, tmp_path)
    told = words(drawing.canvas)
    assert re.search("no run .*came to a good end", told)
    assert "gfmd" in told
    assert not any(drawing.data.get_columns() and drawing.data.to_series(0) == "run")


@pytest.mark.parametrize(("name", "storage"), [("sawada-2", "gfarm"), ("sawada-3", "pfs")])
def test_histograms_count_every_command_of_the_runs_once(
    make: Make, tmp_path: Path, name: str, storage: str
) -> None:
    for repeat in (1, 2):
        make("pfs", repeat=repeat)
        make("gfarm", repeat=repeat, staging="eager")
    drawing = draw(name, tmp_path)
    counts = drawing.data.group_by("operation").agg(pl.col("count").sum(), pl.col("n").first())
    assert dict(counts.select("operation", "count").iter_rows()) == {
        command: 2 * number for command, number in COMMANDS.items()
    }
    assert (counts["count"] == counts["n"]).all()
    operations = load([tmp_path]).where(pl.col("storage") == storage).operations
    mdiff = operations.filter(pl.col("operation") == "mDiff")["elapsed_s"].median()
    shown = drawing.data.filter(pl.col("operation") == "mDiff")["median_s"].unique()
    assert shown.to_list() == [mdiff]
    assert f"{storage}" in words(drawing.canvas)
    assert "2 runs pooled" in words(drawing.canvas)


def test_histograms_are_compared_at_the_largest_node_count_both_have(
    make: Make, tmp_path: Path
) -> None:
    for nodes in (1, 2, 4):
        make("pfs", nodes)
    for nodes in (1, 2):
        make("gfarm", nodes)
    make("gfarm", 4, status="skipped", reason="needs separate hosts")
    for name in ("sawada-2", "sawada-3"):
        assert "2 nodes · 1 run " in words(draw(name, tmp_path).canvas) + " "


def test_both_histograms_have_the_same_panels_and_axes(make: Make, tmp_path: Path) -> None:
    make("pfs", operations=[("mDiff", 0.5), ("mDiff", 0.5), ("mAdd", 20.0)])
    make("gfarm", operations=[("mProjectPP", 0.01), ("mDiff", 0.1)])
    figures = [draw(name, tmp_path).canvas for name in ("sawada-2", "sawada-3")]
    titles = [[axes.get_title("left") for axes in figure.axes] for figure in figures]
    assert titles[0] == titles[1]
    assert set(titles[0]) == {"mProjectPP", "mDiff", "mAdd"}
    for ours, theirs in zip(figures[0].axes, figures[1].axes, strict=True):
        assert (ours.get_xlim(), ours.get_ylim()) == (theirs.get_xlim(), theirs.get_ylim())
    low, high = figures[0].axes[0].get_xlim()
    assert low < 0.01
    assert high > 20
    assert "no run" in words(figures[0])


def test_a_burst_buffer_that_never_ran_is_not_replaced(make: Make, tmp_path: Path) -> None:
    make("pfs")
    make("nodelocal")
    make("gfarm", status="skipped", reason="there is no gfmd on this machine")
    drawing = draw("sawada-2", tmp_path)
    assert drawing.data.is_empty()
    assert "there is no gfmd on this machine" in words(drawing.canvas)
    assert not draw("sawada-3", tmp_path).data.is_empty()


def test_series_that_differ_in_parameters_are_not_mixed(make: Make, tmp_path: Path) -> None:
    make("pfs", parameters={"engine": "rake"}, workflow_time=10.0)
    make("pfs", parameters={"engine": "pwrake"}, workflow_time=20.0)
    drawing = draw("sawada-1", tmp_path)
    medians = drawing.data.filter(pl.col("kind") == "median")
    assert dict(medians.select("series", "value_s").iter_rows()) == {
        "pfs (emulated), in place, engine=pwrake": 20.0,
        "pfs (emulated), in place, engine=rake": 10.0,
    }
    assert draw("sawada-3", tmp_path).data["runs"].unique().to_list() == [1]


@pytest.mark.parametrize("name", ALL)
def test_no_text_leaves_the_page(make: Make, tmp_path: Path, name: str) -> None:
    long = "a very long reason that goes on and on " * 12
    for nodes in (1, 2, 4, 8, 16):
        for storage in ("pfs", "beeond"):
            make(storage, nodes, issues=(long, "another"), parameters={"engine": "pwrake"})
        make("provided", nodes, status="failed", reason=f"{long} on {nodes}")
    assert outside(draw(name, tmp_path).canvas) == []


def test_the_load_of_one_run_is_one_number(make: Make, tmp_path: Path) -> None:
    make("pfs", provenance={"hostname": "laptop", "load_before": 0.44})
    assert "load before a run: 0.4 ·" in words(draw("sawada-1", tmp_path).canvas)


def test_the_conditions_of_the_runs_are_told(make: Make, tmp_path: Path) -> None:
    for repeat, before in ((1, 0.1), (2, 2.5)):
        machine = {"hostname": "laptop", "cores": 2, "cpu_model": "A CPU", "load_before": before}
        make("pfs", repeat=repeat, provenance=machine)
    told = words(draw("sawada-1", tmp_path).canvas)
    assert "2mass-test (synthetic files, made by burstlab's generator; 12 files, 1.6 MB)" in told
    assert "cache: cold · 2 cores, A CPU · load before a run: 0.1 to 2.5" in told
    assert "the parallel file system is emulated" in told
