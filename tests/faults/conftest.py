"""A data set of a few small files for the cells that are disturbed."""

from pathlib import Path

import pytest

from burstlab.dataset.manifest import Manifest, members, read_manifest
from burstlab.dataset.writing import scan, write_manifest


@pytest.fixture
def tiny_manifest(tmp_path: Path) -> Path:
    """Six files of 100 kB each, and their manifest."""
    root = tmp_path / "tiny"
    root.mkdir()
    for number in range(6):
        (root / f"{number}.dat").write_bytes(bytes([number]) * 100_000)
    path = tmp_path / "manifest.json"
    entries = scan(root, members(root, ["*.dat"]))
    write_manifest(
        path, entries, name="tiny", source="synthetic", details={}, root=root, patterns=["*.dat"]
    )
    return path


@pytest.fixture
def tiny_dataset(tiny_manifest: Path) -> Manifest:
    """The data set behind ``tiny_manifest``."""
    return read_manifest(tiny_manifest)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-table", action="store_true", help="docs/reliability.md, from a run")
