"""The PyTorch front end, in PyTorch's own Python."""

from pathlib import Path

import pytest

from tests.pipelines import in_torch
from tests.pipelines.elsewhere import check_in, checks

pytestmark = [pytest.mark.requires("torch", "burstio"), pytest.mark.slow]


@pytest.mark.parametrize("check", checks(in_torch))
def test_torch(check: str, tmp_path: Path) -> None:
    check_in("torch", in_torch, check, tmp_path)
