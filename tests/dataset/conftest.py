"""Small tiles, made once."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from burstlab.dataset import imagenet, twomass
from burstlab.dataset.model import SyntheticTiles
from burstlab.dataset.synthetic import make_tiles

SMALL = SyntheticTiles(columns=3, rows=2, tile_width=64, tile_height=128, stars_per_tile=5)


@pytest.fixture(autouse=True)
def no_files_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests say themselves which tiles and images are given."""
    for variable in (twomass.VARIABLE, imagenet.VARIABLE):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def small_tiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of six synthetic tiles; not to be changed."""
    directory = tmp_path_factory.mktemp("tiles") / "small"
    make_tiles(directory, SMALL)
    return directory


@pytest.fixture
def burstlab(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in ``tmp_path``, as a user would."""

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "burstlab", *words],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
