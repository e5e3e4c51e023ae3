"""Hosts for the double of `beeond`, gone after the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.storage.beeond.cluster import Cluster


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(generation: int = 7, hosts: int = 2) -> Cluster:
        names = tuple(f"node{number}" for number in range(1, hosts + 1))
        made.append(Cluster(tmp_path, names, generation))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    """Of BeeGFS 7.4."""
    return make_cluster()
