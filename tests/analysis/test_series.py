"""How runs are grouped into series, and how a series is named and looks."""

from pathlib import Path

import pytest

from analysis.records import load
from analysis.series import LOOKS, labelled, look
from burstlab.storage import STORAGES
from tests.analysis.conftest import Make


def test_a_cell_that_never_started_its_storage_is_in_the_series_of_its_neighbours(
    make: Make, tmp_path: Path
) -> None:
    make("pfs", 1)
    make("pfs", 2, status="failed", reason="it did not mount")
    assert set(labelled(load([tmp_path]).cells)["series"]) == {"pfs (emulated), in place"}


@pytest.mark.parametrize(
    ("staging", "words"),
    [("none", "in place"), ("eager", "staged in before"), ("lazy", "prefetched"), ("x", "x")],
)
def test_the_staging_is_part_of_the_name(
    make: Make, tmp_path: Path, staging: str, words: str
) -> None:
    make("gfarm", staging=staging)
    assert labelled(load([tmp_path]).cells)["series"].to_list() == [f"gfarm, {words}"]


def test_data_sets_are_named_only_where_there_are_several(make: Make, tmp_path: Path) -> None:
    make("gfarm")
    make("gfarm", repeat=2, dataset_name="2mass-m31")
    series = labelled(load([tmp_path]).cells)["series"].to_list()
    assert series == ["gfarm, in place, 2mass-m31", "gfarm, in place, 2mass-test"]


def test_the_baseline_comes_first(make: Make, tmp_path: Path) -> None:
    for storage in ("beeond", "gfarm", "unheard-of", "pfs"):
        make(storage)
    cells = labelled(load([tmp_path]).cells)
    assert cells["storage"].to_list() == ["pfs", "gfarm", "beeond", "unheard-of"]


def test_every_storage_has_a_colour_and_a_marker_of_its_own() -> None:
    assert set(STORAGES) <= set(LOOKS)
    looks = [look(name) for name in [*LOOKS, "unheard-of"]]
    assert len({one.colour for one in looks}) == len({one.marker for one in looks}) == len(looks)
