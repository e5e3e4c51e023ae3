"""What every training has in common: its parameters, its images' shares, its learning rate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burstlab.training.augmentation import DEVIATION, MEAN, minibatch
from burstlab.training.parameters import BadParameter, Parameters
from burstlab.training.schedule import rate
from burstlab.training.shards import held_back, part, shard


def test_parameters_come_from_the_environment_and_go_back() -> None:
    given_ = {"CHAINERMN_MODE": "paper3", "CHAINERMN_BATCH": "8", "CHAINERMN_VALIDATION": "0"}
    chosen = Parameters.of("chainermn", given_)
    assert (chosen.mode, chosen.batch, chosen.epochs, chosen.ranks) == ("paper3", 8, 10, 4)
    variables = chosen.variables("chainermn")
    assert Parameters.of("chainermn", variables) == chosen
    assert all(name.startswith("CHAINERMN_") for name in variables)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("MODE", "fast", "CHAINERMN_MODE=fast: there are direct, ssd, paper3, lazy"),
        ("NETWORK", "vgg", "CHAINERMN_NETWORK=vgg: there are resnet50, small"),
        ("BATCH", "0", "CHAINERMN_BATCH=0: a whole number from 1 is wanted"),
        ("EPOCHS", "ten", "CHAINERMN_EPOCHS=ten: a whole number from 1 is wanted"),
        ("EPOCHS", "2²", "CHAINERMN_EPOCHS=2²: a whole number from 1 is wanted"),
        ("VALIDATION", "51", "CHAINERMN_VALIDATION=51: at most 50 percent are held back"),
    ],
)
def test_a_wrong_parameter_is_told(name: str, value: str, told: str) -> None:
    with pytest.raises(BadParameter) as error:
        Parameters.of("chainermn", {f"CHAINERMN_{name}": value})
    assert str(error.value) == told


def test_the_learning_rate_is_the_one_that_is_printed() -> None:
    """Sato et al., section 3.5: 256 GPUs, 32 images on each."""
    batch = 256 * 32
    whole = 0.1 * batch / 256
    assert rate(0, batch) == pytest.approx(0.1)
    assert rate(2.5, batch) == pytest.approx((0.1 + whole) / 2)
    courses = {5: whole, 29.9: whole, 30: whole / 10, 60: whole / 100, 80: whole / 1000}
    for epoch, expected in courses.items():
        assert rate(epoch, batch) == pytest.approx(expected), epoch


def test_a_shorter_training_takes_the_same_course() -> None:
    for epoch in (0, 1.25, 4, 31, 79.5, 99):
        assert rate(epoch / 10, 8192, schedule=10) == pytest.approx(rate(epoch, 8192))


def test_a_small_batch_does_not_begin_with_the_rate_of_a_large_one() -> None:
    assert [rate(epoch, 32) for epoch in (0, 3, 10)] == pytest.approx([0.0125] * 3)


@given(images=st.integers(1, 200), ranks=st.integers(1, 9), percent=st.integers(0, 50))
def test_shares(images: int, ranks: int, percent: int) -> None:
    trained, kept = held_back(images, percent)
    assert sorted(trained + kept) == list(range(images))
    assert len(kept) == images * percent // 100
    shards = [shard(trained, rank, ranks) for rank in range(ranks)]
    assert {len(one) for one in shards} == {-(-len(trained) // ranks)}, "as many on each rank"
    assert {number for one in shards for number in one} == set(trained), "none is left out"
    if len(trained) % ranks == 0:
        assert sorted(number for one in shards for number in one) == trained, "none is in two"
    parts = [part(kept, rank, ranks) for rank in range(ranks)]
    assert sorted(number for one in parts for number in one) == kept, "each is seen once"


def test_pictures_are_cut_mirrored_and_scaled() -> None:
    side, room = 4, 2
    image = np.arange(3 * 6 * 6, dtype=np.uint8).reshape(3, 6, 6)
    pictures, labels = minibatch([(image, np.int32(7))], side, None)
    middle = image[:, room // 2 : room // 2 + side, room // 2 : room // 2 + side]
    assert pictures.dtype == np.float32 and labels.tolist() == [7]
    assert np.allclose(pictures[0], (middle - MEAN) / DEVIATION)
    places = [(t, left) for t in range(room + 1) for left in range(room + 1)]
    squares = [image[:, t : t + side, left : left + side] for t, left in places]
    allowed = [(s - MEAN) / DEVIATION for one in squares for s in (one, one[:, :, ::-1])]
    random, seen = np.random.RandomState(1), set()
    for _ in range(400):
        cut = minibatch([(image, np.int32(0))], side, random)[0][0]
        [which] = [i for i, one in enumerate(allowed) if np.allclose(cut, one, atol=1e-6)]
        seen.add(which)
    assert seen == set(range(len(allowed))), "every place, mirrored and not"
