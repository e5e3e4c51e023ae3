"""One Rakefile for two engines: the same mosaic whichever runs it, and an honest choice of it."""

import json
import os
from pathlib import Path

import pytest

from .running import Workplace, pwrake

pytestmark = pytest.mark.requires("montage")

PRODUCTS = ("mosaic.fits", "mosaic_area.fits", "mosaic.png")


def same(one: Workplace, other: Workplace) -> list[str]:
    """The products that are equal, byte by byte."""
    return [p for p in PRODUCTS if (one.mount / p).read_bytes() == (other.mount / p).read_bytes()]


@pytest.mark.slow
def test_mosaic_does_not_depend_on_the_number_of_cores(
    finished: Workplace, place: Workplace
) -> None:
    done = place.run(cores=1)
    assert done.returncode == 0, done.stderr
    assert same(finished, place) == list(PRODUCTS)


@pytest.mark.requires("pwrake")
def test_pwrake_makes_the_same_mosaic(finished: Workplace, place: Workplace) -> None:
    done = place.run("--engine", "pwrake", **pwrake())
    assert done.returncode == 0, done.stderr
    assert same(finished, place) == list(PRODUCTS)
    assert place.facts()["engine"].startswith("pwrake 2.")
    assert place.facts()["filesystem"] == "nfs"
    ours = [(row["task"], row["command"]) for row in place.operations()]
    theirs = (place.cell / "pwrake" / "command.csv").read_text()
    assert len(ours) == len(finished.operations())
    assert all(f"{task},{command}" in theirs for task, command in ours)


@pytest.mark.requires("pwrake")
def test_pwrake_ignores_settings_meant_for_others(place: Workplace) -> None:
    done = place.run("--engine", "pwrake", **pwrake(), HOSTFILE="/nowhere", LOG_DIR="/nowhere")
    assert done.returncode == 0, done.stderr


@pytest.mark.requires("pwrake")
def test_pwrake_is_taken_where_it_is(place: Workplace) -> None:
    assert place.start(**pwrake()).wait(120) == 0
    assert place.facts()["engine"].startswith("pwrake")


@pytest.mark.slow
def test_a_second_run_executes_nothing(copy: Workplace) -> None:
    before = {p: p.stat().st_mtime_ns for p in copy.mount.rglob("*") if p.is_file()}
    done = copy.run()
    assert done.returncode == 0, done.stderr
    assert copy.operations() == []
    assert {p: p.stat().st_mtime_ns for p in copy.mount.rglob("*") if p.is_file()} == before


def test_facts_tell_engine_and_counts(finished: Workplace, tiles: Path) -> None:
    facts = finished.facts()
    assert facts["engine"].startswith("rake 13")
    assert facts["tiles"] == str(len(list(tiles.glob("*.fits"))))
    assert facts["grid"] == "2x2"
    assert facts["ruby"] and facts["montage"]


def test_workflow_time_covers_every_command(finished: Workplace) -> None:
    [metric] = json.loads((finished.cell / "metrics.json").read_text())
    assert (metric["name"], metric["unit"], metric["better"]) == ("workflow_time", "s", "lower")
    rows = finished.operations()
    ends = [float(row["start_s"]) + float(row["elapsed_s"]) for row in rows]
    assert metric["value"] >= max(ends) - min(float(row["start_s"]) for row in rows)


def test_pwrake_asked_for_and_not_there(place: Workplace) -> None:
    nowhere = {
        "PATH": os.pathsep.join(p for p in os.environ["PATH"].split(":") if "pwrake" not in p)
    }
    done = place.run("--engine", "pwrake", **nowhere)
    assert done.returncode == 1
    assert "no pwrake on PATH; set PWRAKE" in done.stderr
    assert not (place.cell / "operations.csv").exists()


def test_wrong_pwrake_is_not_replaced_by_rake(place: Workplace) -> None:
    process = place.start(PWRAKE="/nowhere")
    assert process.wait(60) == 1
    assert process.stderr and "PWRAKE=/nowhere: neither" in process.stderr.read()
    process.stderr.close()
