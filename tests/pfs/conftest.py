from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pfs.emulator import FREE, Emulator, emulated


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """One that costs nothing, for what has nothing to do with costs."""
    with emulated(tmp_path_factory.mktemp("pfs"), *FREE) as running:
        yield running


@pytest.fixture
def work(emulator: Emulator, request: pytest.FixtureRequest) -> Path:
    """A directory of this test's own on the emulated parallel file system."""
    directory = emulator.work / request.node.name
    directory.mkdir()
    return directory
