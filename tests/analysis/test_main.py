"""The command line: what it writes, what it says when it can't."""

from pathlib import Path

import polars as pl
import pytest

from analysis.__main__ import main
from analysis.registry import figures
from analysis.sources import short_title
from tests.analysis.conftest import Make

ROOT = Path(__file__).parents[2]


def test_list_names_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(f"{name} " in printed for name in figures())


def test_a_figure_is_the_same_bytes_for_the_same_records(make: Make, tmp_path: Path) -> None:
    for repeat in (1, 2, 3):
        make("pfs", repeat=repeat, workflow_time=10.0 + repeat)
    arguments = ["figure", "sawada", "1", "--records", str(tmp_path / "results"), "--output"]
    for stem in ("a", "b"):
        assert main([*arguments, str(tmp_path / stem)]) == 0
    for suffix in ("svg", "png", "csv"):
        first, second = (tmp_path / f"{stem}.{suffix}" for stem in ("a", "b"))
        assert first.read_bytes() == second.read_bytes(), suffix


def test_tables_stand_for_the_records(make: Make, tmp_path: Path) -> None:
    make("pfs")
    make("gfarm", status="skipped", reason="it needs separate hosts")
    tables = tmp_path / "tables"
    assert main(["tables", "--records", str(tmp_path / "results"), "--output", str(tables)]) == 0
    for source, name in (("--tables", tables), ("--records", tmp_path / "results")):
        stem = tmp_path / source.strip("-")
        assert main(["figure", "sawada", "3", source, str(name), "--output", str(stem / "f")]) == 0
        assert main(["tell", source, str(name), "--output", str(stem)]) == 0
    for name in ("f.csv", "f.svg", "phases.csv", "phases.html", "summary.rst"):
        from_tables, from_records = (tmp_path / way / name for way in ("tables", "records"))
        assert from_tables.read_bytes() == from_records.read_bytes(), name


def test_draw_makes_all_that_an_experiment_lists_after_a_partial_failure(
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make("pfs")
    make("pfs", repeat=2, status="failed", reason="the workload ended with 1")
    make("pfs", nodes=4, workflow_time=77.0)
    experiments = tmp_path / "config/experiments"
    experiments.mkdir(parents=True)
    (experiments / "trial.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "trial"]) == 0
    output = tmp_path / "results/figures/trial/demo"
    assert {path.name for path in output.iterdir()} == {
        *(f"sawada-{n}.{suffix}" for n in (1, 3) for suffix in ("svg", "png", "csv")),
        *("phases.csv", "phases.html", "summary.rst"),
    }
    drawn = pl.read_csv(output / "sawada-1.csv")
    assert "failed" in drawn["kind"]
    assert set(drawn["nodes"]) == {1}, "the experiment no longer has the cell on 4 nodes"
    assert capsys.readouterr().err == (
        "left out: 1 of 3 records in results/trial/demo, "
        "of cells that config/experiments/trial.yaml no longer has\n"
    )


EXPERIMENT = """
title: a trial
figures: [sawada-1, sawada-3]
scales:
  demo:
    repeats: 2
    blocks:
      - workload: montage
        runtime_min: 5
        product: {storage: [pfs], staging: [none], nodes: [1]}
"""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["figure", "sawada", "99", "--records", ".", "--output", "x"], "'sawada-99' is none of"),
        (["tell", "--records", ".", "--output", "x"], "no record.json or failed.json"),
    ],
)
def test_an_error_is_one_line_and_its_own_status(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 120
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_every_figure_has_a_caption_and_the_papers_own_values() -> None:
    for name, figure in figures().items():
        assert 0 < len(short_title(name)) < 60, name
        of_a_paper = figure.paper != "trace"
        assert (ROOT / "analysis/reference" / f"{figure.paper}.csv").is_file() == of_a_paper, name
