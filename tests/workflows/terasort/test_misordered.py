"""Output that is really out of order is found by TeraValidate, and refused by the cell's check."""

from pathlib import Path

import pytest

from burstlab.errors import CheckError

from .running import TeraCell

pytestmark = [pytest.mark.requires("terasort", "hadoop"), pytest.mark.slow]
ROW_BYTES = 100


def swap_two_rows(output: Path) -> None:
    """The first two, after TeraSort and before they are read; Hadoop would see the checksum."""
    output.with_name(f".{output.name}.crc").unlink()
    with output.open("r+b") as file:
        first, second = file.read(ROW_BYTES), file.read(ROW_BYTES)
        assert first < second
        file.seek(0)
        file.write(second + first)


def test_two_rows_that_are_swapped_are_told(tmp_path: Path) -> None:
    cell = TeraCell(tmp_path).begin()
    cell.await_(lambda: cell.has("sorted/_SUCCESS"), "TeraSort has ended")
    swap_two_rows(cell.work / "sorted/part-r-00000")
    assert cell.status() == CheckError.exit_status
    assert cell.reason().startswith(
        "the check refuses the result (exit status 1): output wrong: TeraValidate found 1 errors, "
        "first misorder in part-r-00000 between "
    )
    record = cell.record()
    assert record is not None and record["exit_status"] == CheckError.exit_status
    assert cell.left_behind() == []
