"""Staging inside a cell: the record tells by which method, and how long each phase took."""

from pathlib import Path
from typing import Any

import pytest

from tests.cell.running import Place
from tests.staging.conftest import Stage


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def staged_cell(stage: Stage, place: Place, method: str, *flags: str) -> dict[str, Any]:
    """The record of a cell that finds all of the data set, staged to one place."""
    done = place.run(
        *("--storage", "nodelocal", "--dataset", stage.manifest, "--staging", "eager"),
        *("--staging-method", method, *flags),
        run=["sh", "-c", 'test "$(find "$BURSTLAB_DATA" -type f | wc -l)" = 60'],
    )
    assert done.returncode == 0, done.stderr
    record = place.record()
    assert record is not None
    staged = record["dataset"]["staged"]
    assert (staged["method"], staged["files"], staged["hosts"]) == (method, 60, 1)
    return record


@pytest.mark.requires("burstio", "staging")
@pytest.mark.parametrize(
    ("method", "phases"),
    [("copy", {"copy"}), ("archive", {"pack", "unpack", "verify"}), ("paper", {"copy", "verify"})],
)
def test_record_accounts_for_the_copy(
    stage: Stage, place: Place, method: str, phases: set[str]
) -> None:
    record = staged_cell(stage, place, method)
    staged = record["dataset"]["staged"]
    assert set(staged["phases"]) == phases
    (span,) = [span for span in record["spans"] if span["name"] == "stage_in"]
    assert sum(staged["phases"].values()) <= span["elapsed_s"]
    assert place.left_behind() == []


@pytest.mark.requires("burstio")
@pytest.mark.parametrize("method", ["tree", "shard"])
def test_virtual_nodes_share_what_is_staged_once(stage: Stage, place: Place, method: str) -> None:
    staged_cell(stage, place, method, "--nodes", "2")
    assert place.left_behind() == []
