"""operations.csv: one row for each command, the same columns whichever engine ran it."""

import socket
from collections import Counter

import pytest

from .running import Workplace, pwrake

pytestmark = pytest.mark.requires("montage")

COLUMNS = ["operation", "start_s", "elapsed_s", "host", "status", "task", "command"]
SUBTILES = 4


def expected_counts(facts: dict[str, str]) -> Counter[str]:
    """How often each command runs on so many tiles and pairs."""
    tiles, pairs = int(facts["tiles"]), int(facts["pairs"])
    once = Counter(("mMakeHdr", "mOverlaps", "mConcatFit", "mBgModel", "mViewer"))
    subtiles = dict.fromkeys(("mTileHdr", "mCoverageCheck", "mShrink"), SUBTILES)
    wide = {"mProjectPP": tiles, "mBackground": tiles, "mDiff": pairs, "mFitplane": pairs}
    return once + Counter(subtiles | wide | {"mImgtbl": 3, "mAdd": SUBTILES + 2})


def check(place: Workplace, hosts: set[str]) -> None:
    rows = place.operations()
    assert list(rows[0]) == COLUMNS
    assert Counter(row["operation"] for row in rows) == expected_counts(place.facts())
    assert {row["status"] for row in rows} == {"0"}
    assert {row["host"] for row in rows} <= hosts
    for row in rows:
        assert row["command"].split()[0] == row["operation"]
        assert float(row["start_s"]) > 1_700_000_000
        assert 0 < float(row["elapsed_s"]) < 60


def test_rows_of_rake(finished: Workplace) -> None:
    check(finished, {socket.gethostname()})


@pytest.mark.requires("pwrake")
def test_rows_of_pwrake(place: Workplace) -> None:
    done = place.run("--engine", "pwrake", **pwrake())
    assert done.returncode == 0, done.stderr
    check(place, {"localhost"})


def test_commands_run_side_by_side(finished: Workplace) -> None:
    """Rake's threads wait for each other easily: then two jobs project one tile at a time."""
    spans = [
        (float(row["start_s"]), float(row["start_s"]) + float(row["elapsed_s"]))
        for row in finished.operations()
        if row["operation"] == "mProjectPP"
    ]
    overlapping = [a for a in spans if any(b != a and b[0] < a[1] and a[0] < b[1] for b in spans)]
    assert len(overlapping) >= len(spans) / 2


@pytest.mark.slow
def test_grid_and_shrink_are_parameters(place: Workplace) -> None:
    done = place.run(MONTAGE_GRID="1x3", MONTAGE_SHRINK="8")
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (place.mount / "shrunk").glob("*.fits")) == [
        "0_0.fits",
        "0_1.fits",
        "0_2.fits",
    ]
    assert (place.facts()["grid"], place.facts()["shrink"]) == ("1x3", "8")


@pytest.mark.parametrize(
    ("name", "value"), [("MONTAGE_GRID", "2"), ("MONTAGE_GRID", "0x2"), ("MONTAGE_SHRINK", "x")]
)
def test_bad_parameter_is_named(place: Workplace, name: str, value: str) -> None:
    done = place.run(**{name: value})
    assert done.returncode == 1
    assert f"{name}={value}: give" in done.stderr
