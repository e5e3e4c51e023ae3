"""Few small tiles, and one finished mosaic of them that many tests look at."""

import shutil
from pathlib import Path

import pytest

from .running import Workplace


@pytest.fixture(scope="session")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine overlapping tiles of 128x256 pixels, three columns of three, with truth.json."""
    from burstlab.dataset.model import SyntheticTiles
    from burstlab.dataset.synthetic import make_tiles

    directory = tmp_path_factory.mktemp("data") / "tiles"
    arguments = {"columns": 3, "rows": 3, "tile_width": 128, "tile_height": 256}
    make_tiles(directory, SyntheticTiles(**arguments, stars_per_tile=25))
    return directory


@pytest.fixture(scope="session")
def finished(tiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A mosaic made by rake on two cores; to be read, not written."""
    place = Workplace(tmp_path_factory.mktemp("finished"), tiles)
    done = place.run()
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture
def place(tiles: Path, tmp_path: Path) -> Workplace:
    """An empty cell that reads the tiles."""
    return Workplace(tmp_path, tiles)


@pytest.fixture
def copy(finished: Workplace, tmp_path: Path) -> Workplace:
    """The finished mosaic, to be spoilt."""
    shutil.copytree(finished.root, tmp_path / "copy")
    return Workplace(tmp_path / "copy", finished.tiles)
