"""What each rank reads: nothing twice, nothing that another reads, in an order of its own."""

from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def share(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("share")


@given(
    images=st.integers(1, 300),
    ranks=st.integers(1, 9),
    batch=st.integers(1, 40),
    epoch=st.integers(0, 3),
)
def test_ranks_read_as_many_images_and_none_in_common(
    share: ModuleType, images: int, ranks: int, batch: int, epoch: int
) -> None:
    everything = [share.Image(str(number), 0) for number in range(images)]
    shares = [share.Share(rank, ranks, everything) for rank in range(ranks)]
    [steps] = {one.steps(batch) for one in shares}
    read = [one.epoch(epoch, steps * batch) for one in shares]
    assert {len(one) for one in read} == {steps * batch}
    flat = [number for one in read for number in one]
    assert len(set(flat)) == len(flat)
    assert set(flat) <= set(range(images))
    assert images - len(flat) < ranks * batch, "no whole minibatch is left out"


def test_record_files_hold_every_image_once(share: ModuleType) -> None:
    everything = [share.Image(str(number), 0) for number in range(101)]
    packed = [share.Share(rank, 4, everything).epoch(0, 101) for rank in range(4)]
    assert sorted(number for one in packed for number in one) == list(range(101))


def test_each_epoch_has_another_order(share: ModuleType) -> None:
    one = share.Share(1, 2, [share.Image(str(number), 0) for number in range(64)])
    assert one.epoch(0, 32) != one.epoch(1, 32)
    assert one.epoch(0, 32) == one.epoch(0, 32)
