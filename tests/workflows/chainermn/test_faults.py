"""What can go wrong with ChainerMN's pipelines alone."""

import pytest

from tests.workflows.trainings.running import ENDED, Place
from tests.workflows.trainings.test_faults import check_stalled, truncated

pytestmark = pytest.mark.requires("chainer", "burstio")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "lazy"])
def test_a_truncated_image(spoilt: Place, mode: str) -> None:
    victim, reason = truncated(spoilt, mode=mode)
    assert f" on localhost: {victim}: no whole image: " in reason


@pytest.mark.slow
@pytest.mark.requires("fuse")
def test_a_file_system_that_stalls(place: Place) -> None:
    check_stalled(place)


def test_a_mode_that_its_storage_does_not_go_with(place: Place) -> None:
    told = "mode ssd on storage pfs: it reads what was staged to nodelocal"
    assert place.run("pfs", mode="ssd")["reason"] == f"{ENDED} 1: {told}"
