"""Few tiny images in four class folders, which many tests read, and cells to train in."""

import shutil
from pathlib import Path

import pytest

from .running import IMAGES, Place


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """32 JPEG files; to be read, not written."""
    from burstlab.dataset.images import make_images
    from burstlab.dataset.model import SyntheticImages

    directory = tmp_path_factory.mktemp("data") / "images"
    make_images(directory, SyntheticImages(**IMAGES))
    return directory


@pytest.fixture
def place(images: Path, tmp_path: Path) -> Place:
    """An empty cell that reads the images."""
    return Place(tmp_path, images)


@pytest.fixture
def spoilt(images: Path, tmp_path: Path) -> Place:
    """The same with images of its own, to be spoilt."""
    shutil.copytree(images, tmp_path / "images")
    return Place(tmp_path, tmp_path / "images")
