"""One lab for all tests of a module, or one of its own for a test that ends it."""

from collections.abc import Iterator

import pytest

from tests.lab.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Four nodes with a parallel file system of 20 MB/s."""
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "4", "--pfs-option", "bandwidth_mb_s=20")
        yield cluster


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A lab that is not up yet, for tests that end it their own way."""
    with Cluster() as cluster:
        yield cluster
