"""The Chainer front end against MultiprocessIterator, in Chainer's own Python."""

from pathlib import Path

import pytest

from tests.pipelines import in_chainer
from tests.pipelines.elsewhere import check_in, checks

pytestmark = pytest.mark.requires("chainer", "burstio")

SLOW = ("check_a_trainer_trains", "check_every_mode_steps_like_multiprocess_iterator")


@pytest.mark.parametrize(
    "check",
    [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in checks(in_chainer)],
)
def test_chainer(check: str, tmp_path: Path) -> None:
    check_in("chainer", in_chainer, check, tmp_path)
