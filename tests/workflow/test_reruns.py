"""What runs again and what does not: the cells of a campaign are worth node-hours."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout, Run
from tests.workflow.conftest import TARGET, moved

pytestmark = pytest.mark.slow
CELL = "results/nothing/demo/noop/nodelocal-eager/n2/end=good/r2"
FIGURES = {"tables": 1, "phases": 1, "nothing": 1}


def test_a_failed_cell_fails_the_run_and_stops_no_other(half: tuple[Checkout, Run]) -> None:
    checkout, run = half
    assert run.status != 0
    assert run.jobs == {"dataset": 1, "environment_noop": 1, "noop": 8, **FIGURES, "total": 13}
    cells = checkout.root / "results/nothing/demo/noop"
    records = [json.loads(path.read_text()) for path in cells.rglob("record.json")]
    assert [record["cell"]["parameters"]["end"] for record in records] == ["good"] * 4
    failures = [json.loads(path.read_text()) for path in cells.rglob("failed.json")]
    assert [failure["cell"]["parameters"]["end"] for failure in failures] == ["bad"] * 4


def test_a_failed_cell_shows_its_block_in_the_terminal(half: tuple[Checkout, Run]) -> None:
    assert half[1].text.count("FAILED in run: ") == 4


def test_the_end_of_a_run_with_failures_names_commands_that_work(
    half: tuple[Checkout, Run], tmp_path: Path
) -> None:
    checkout = moved(half[0], tmp_path)
    why, draw = (line for line in half[1].text.splitlines() if line.startswith("burstlab: "))
    assert why.startswith("burstlab: 4 cells of nothing failed. Why: ")
    assert checkout.shell(why.split("Why: ")[1]).text.count("exit status") == 4
    drawn = checkout.shell(draw.split("there is: ")[1])
    assert drawn.status == 0, drawn.text
    assert "4 failed, 4 ok" in (checkout.root / drawn.text.splitlines()[-1]).read_text()


def test_a_second_run_takes_up_what_failed(done: tuple[Checkout, Run]) -> None:
    checkout, run = done
    assert run.status == 0, run.text
    assert run.jobs == {"noop": 4, **FIGURES, "total": 7}
    assert not list(checkout.root.rglob("failed.json"))
    assert len(list(checkout.root.rglob("record.json"))) == 8


def test_then_there_is_nothing_to_do(planned: Callable[..., Run]) -> None:
    assert planned().nothing_to_do


def test_a_deleted_record_runs_its_cell_again(
    checkout: Checkout, planned: Callable[..., Run]
) -> None:
    (checkout.root / CELL / "record.json").unlink()
    run = planned()
    assert run.jobs == {"noop": 1, **FIGURES, "total": 4}
    assert f"output: {CELL}/record.json" in run.text


def test_a_deleted_data_set_is_made_for_the_cell_that_needs_it(
    checkout: Checkout, planned: Callable[..., Run]
) -> None:
    """It was deleted to free space; made again, it is no reason to run what has its record."""
    (checkout.root / CELL / "record.json").unlink()
    shutil.rmtree(checkout.root / "results/datasets")
    shutil.rmtree(checkout.root / "results/environments")
    jobs = planned().jobs
    assert jobs == {"dataset": 1, "environment_noop": 1, "noop": 1, **FIGURES, "total": 6}


def test_what_changes_no_number_runs_nothing(
    checkout: Checkout, planned: Callable[..., Run]
) -> None:
    later = 4_000_000_000
    os.utime(checkout.root / "results/datasets/small/manifest.json", (later, later))
    os.utime(checkout.root / "results/environments/noop.json", (later, later))
    checkout.change("rules/noop.smk", "rule noop:", "# A comment.\nrule noop:")
    checkout.change("rules/noop.smk", "-- workflows", "--label note=new -- workflows")
    checkout.change("workflows/noop/run", "test -e", "test  -e")
    checkout.change("envs/noop/conda.yaml", "coreutils", "coreutils=9")
    checkout.change("config/experiments/nothing.yaml", "runtime_min: 5", "runtime_min: 50")
    checkout.change("config/sites/here.yaml", "local_dir: scratch", "local_dir: elsewhere")
    assert planned().nothing_to_do


def test_results_brought_without_their_times_run_nothing(
    checkout: Checkout, planned: Callable[..., Run]
) -> None:
    """As `scp -r results` leaves them in a fresh clone: new times in any order, no metadata."""
    shutil.rmtree(checkout.root / ".snakemake")
    cells = sorted((checkout.root / "results").rglob("record.json"))
    others = [path for path in (checkout.root / "results").rglob("*.json") if path not in cells]
    for second, path in enumerate([*cells, *others]):
        os.utime(path, (1_700_000_000 + second, 1_700_000_000 + second))
    assert "noop" not in planned().jobs


def test_another_condition_runs_the_cells_again(
    checkout: Checkout, planned: Callable[..., Run]
) -> None:
    checkout.change("config/experiments/nothing.yaml", "cache: as-is", "cache: warm")
    assert planned().jobs["noop"] == 8


def test_other_given_files_run_the_cells_again_and_moved_ones_do_not(
    checkout: Checkout, planned: Callable[..., Run]
) -> None:
    tiles = checkout.root / "results/datasets/small/synthetic"
    shutil.copytree(tiles, checkout.root / "tiles")
    definition = "source: synthetic\n  synthetic: {columns: 2, rows: 1, tile_width: 64"
    given = "source: given\n  directory: tiles\n  synthetic: {columns: 2, rows: 1, tile_width: 64"
    checkout.change("config/datasets.yaml", definition, given)
    first = checkout.shell(TARGET)
    assert first.jobs == {"dataset": 1, "noop": 8, **FIGURES, "total": 12}
    assert planned().nothing_to_do
    shutil.copytree(checkout.root / "tiles", checkout.root / "moved")
    checkout.change("config/datasets.yaml", "directory: tiles", "directory: moved")
    assert planned().jobs == {"dataset": 1, "total": 1}
    for tile in (checkout.root / "moved").glob("*.fits"):
        tile.write_bytes(tile.read_bytes()[:-1] + b"x")
    assert planned().jobs["noop"] == 8


def test_one_more_value_runs_only_what_is_new(
    checkout: Checkout, planned: Callable[..., Run]
) -> None:
    checkout.change("config/experiments/nothing.yaml", "nodes: [1, 2]", "nodes: [1, 2, 4]")
    assert planned().jobs["noop"] == 4


def test_tables_and_figures_are_of_the_cells_there_are(
    checkout: Checkout, planned: Callable[..., Run]
) -> None:
    checkout.change("config/experiments/nothing.yaml", "nodes: [1, 2]", "nodes: [1]")
    assert planned().jobs == {**FIGURES, "total": 3}
    assert checkout.shell(TARGET).status == 0
    summary = (checkout.root / "results/figures/nothing/demo/summary.rst").read_text()
    assert "4 cells (4 ok)" in summary
    told = (checkout.root / "results/logs/tables/nothing-demo.log").read_text()
    assert "left out: 4 of 8 records" in told


def test_a_changed_program_runs_again_when_asked(planned: Callable[..., Run]) -> None:
    assert planned("--forcerun noop").jobs["noop"] == 8


def test_a_damaged_data_set_is_named_before_any_cell_runs(checkout: Checkout) -> None:
    tiles = sorted((checkout.root / "results/datasets/small").rglob("*.fits"))
    os.truncate(tiles[0], 2880)
    record = checkout.root / CELL / "record.json"
    record.unlink()
    run = checkout.shell("snakemake --config site=here --cores 1 nothing")
    assert run.status != 0
    told = [line for line in run.text.splitlines() if line.startswith("burstlab: ")]
    assert len(told) == 1
    assert f"{tiles[0].name}: truncated: 2880 of" in told[0]
    assert "Finished jobid" not in run.text
    assert not record.exists()


def test_a_data_set_of_another_experiment_may_be_damaged(
    checkout: Checkout,
) -> None:
    """Only what the cells of this run read is looked at: it may be a million files."""
    text = (checkout.root / "config/experiments/nothing.yaml").read_text()
    other = text.replace("        dataset: small\n", "").replace("[eager]", "[none]")
    (checkout.root / "config/experiments/other.yaml").write_text(other)
    for tile in (checkout.root / "results/datasets/small").rglob("*.fits"):
        tile.unlink()
    record = "results/other/demo/noop/nodelocal-none/n1/end=good/r1/record.json"
    run = checkout.shell(f"snakemake --config site=here --cores 1 {record}")
    assert run.status == 0, run.text
    assert run.jobs == {"noop": 1, "total": 1}
