"""A record is there complete or not at all, and its opposite never lies beside it."""

from pathlib import Path

import pytest

from burstlab import record
from burstlab.errors import BurstlabError
from burstlab.record import CellKey, Record

FAILED = Record("failed", "the workload ended with exit status 1", 1, CellKey("x"), "now")


def test_what_can_not_be_written_is_told_with_the_cells_own_reason(tmp_path: Path) -> None:
    (tmp_path / "failed.json").mkdir()  # in the way of the rename
    with pytest.raises(BurstlabError, match=r"failed\.json: the record can't be written: Is a dir"):
        record.write(FAILED, tmp_path)
    with pytest.raises(BurstlabError, match="reason was: the workload ended with exit status 1"):
        record.write(FAILED, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["failed.json"]


def test_a_failure_takes_the_place_of_a_record(tmp_path: Path) -> None:
    record.write(Record("ok", "", 0, CellKey("x"), "now"), tmp_path)
    record.write(FAILED, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["failed.json"]
