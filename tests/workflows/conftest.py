"""For trainings: few tiny images in four class folders, and cells that read them."""

import shutil
from pathlib import Path

import pytest

from .trainings.running import IMAGES, Place, Workload


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """32 JPEG files; to be read, not written."""
    from burstlab.dataset.images import make_images
    from burstlab.dataset.model import SyntheticImages

    directory = tmp_path_factory.mktemp("data") / "images"
    make_images(directory, SyntheticImages(**IMAGES))
    return directory


@pytest.fixture
def place(images: Path, tmp_path: Path, workload: Workload) -> Place:
    """An empty cell that reads the images."""
    return Place(tmp_path, images, workload)


@pytest.fixture
def spoilt(images: Path, tmp_path: Path, workload: Workload) -> Place:
    """The same with images of its own, to be spoilt."""
    shutil.copytree(images, tmp_path / "images")
    return Place(tmp_path, tmp_path / "images", workload)
