"""The report's first page says what was measured, from the records, in valid markup."""

from pathlib import Path
from typing import Any

import pytest
from docutils.core import publish_doctree

from analysis.records import load
from analysis.summary import summary
from tests.analysis.conftest import Make


def told(tmp_path: Path) -> str:
    """The summary as a reader sees it; markup that docutils would complain of is an error."""
    text = summary(load([tmp_path]))
    return str(publish_doctree(text, settings_overrides={"halt_level": 2}).astext())


def test_synthetic_data_and_emulated_storage_are_called_so(make: Make, tmp_path: Path) -> None:
    make("pfs")
    text = told(tmp_path)
    assert "2mass-test (synthetic files, made by burstlab's generator; 12 files, 1.6 MB)" in text
    assert "The parallel file system is emulated (type fuse, metadata_latency_ms 1.0" in text
    assert "pfs (emulated), in place" in text
    assert "engine rake 13.0.6" in text
    assert "commit 0123456789ab." in text


@pytest.mark.parametrize(
    ("source", "phrase"), [("given", "real files, given"), ("fetched", "real files, fetched")]
)
def test_real_data_are_called_so(make: Make, tmp_path: Path, source: str, phrase: str) -> None:
    dataset = {"name": "orion", "source": source, "files": 10, "bytes": 21_110_400}
    make("gfarm", dataset=dataset, pfs={"emulated": False, "type": "lustre"})
    text = told(tmp_path)
    assert f"({phrase}" in text
    assert "10 files, 21.1 MB" in text
    assert "synthetic" not in text
    assert "emulated" not in text


def test_what_went_wrong_is_part_of_it(make: Make, tmp_path: Path) -> None:
    make("pfs", issues=("cache on node01 is not cold: 10 of 20 bytes are resident",))
    make("gfarm", 2, status="skipped", reason="it needs separate hosts")
    text = told(tmp_path)
    assert "2 cells (1 ok, 1 skipped)" in text
    assert "gfarm, in place, 2 nodes (1 cell): it needs separate hosts." in text
    assert "in 1 of 1 run: cache on node01 is not cold" in text


def test_issues_of_one_kind_are_told_with_all_their_numbers(make: Make, tmp_path: Path) -> None:
    """Not with those of the first, which is another one on each figure."""
    for repeat, percent in enumerate((35, 21, 148), 1):
        issue = f"others used {percent}% of 2 processors"
        make("pfs", repeat=repeat, issues=(issue,))
    assert "others used 21 to 148% of 2 processors (3x)" in told(tmp_path)


@pytest.mark.parametrize(
    "reason",
    ["*gfmd* `died` in |it|_", "`half", "**bold", "a_ b__ [1]_ <http://x>`_", "\\", ":a:`b`"],
)
def test_no_reason_is_taken_for_markup(make: Make, tmp_path: Path, reason: str) -> None:
    fields: dict[str, Any] = {"status": "failed", "reason": f"{reason} and more"}
    make("pfs", **fields)
    assert f"{reason} and more" in told(tmp_path)
