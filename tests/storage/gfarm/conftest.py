"""Real Gfarm instances, each with a lease of its own, gone after the test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from burstlab import lease
from burstlab.lease import Lease
from burstlab.mounts import mounted_at
from burstlab.nodes import Node, VirtualNodes
from burstlab.pfs.site import MountedPfs
from burstlab.storage.gfarm import GfarmStorage
from burstlab.storage.interface import Context
from burstlab.supervision import Supervisor


@dataclass
class Running:
    """One started instance and who looks after it."""

    lease: Lease
    storage: GfarmStorage

    @property
    def mount(self) -> Path:
        return self.storage.mount

    @property
    def directory(self) -> Path:
        """Of the node: configuration, key, spool, logs."""
        return self.storage.context.hosts[0].local_dir / "gfarm"

    @property
    def node(self) -> Node:
        """What a node action gets."""
        return Node(self.storage.context.hosts[0], self.lease)

    def wrong(self) -> list[str]:
        """What a cell asks again and again while its workload runs."""
        return [*Supervisor(self.lease).deaths(), *self.storage.problems()]

    def take_down(self) -> None:
        """As a cell does; fails when anything of the instance is still there."""
        self.storage.stop()
        assert self.lease.clean(grace_s=2) == []
        held = lease.read(self.lease.journal)
        assert [path for path in held.directories if Path(path).exists()] == []
        assert [path for path in held.mounts if mounted_at(path)] == []
        assert [one for one in held.processes if one.alive()] == []
        self.lease.release()


Prepare = Callable[..., Running]


def prepare(
    directory: Path, needs: frozenset[str] = frozenset(), nodes: int = 1, time_limit_s: float = 0
) -> Running:
    """An instance that is not started yet, in a directory that exists."""
    held = Lease.create(label="test of gfarm")
    context = Context(
        id=held.id,
        directory=directory,
        nodes=VirtualNodes(directory, nodes, held),
        lease=held,
        pfs=MountedPfs(directory, held.id, held),
        needs=needs,
        time_limit_s=time_limit_s,
    )
    return Running(held, GfarmStorage(GfarmStorage.Options(), context))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Prepare]:
    """Start instances; each is taken down at the end, whatever the test did to it."""
    started: list[Running] = []

    def one(needs: frozenset[str] = frozenset(), directory: Path | None = None) -> Running:
        if directory is None:
            directory = tmp_path / f"gfarm-{len(started)}"
            directory.mkdir()
        running = prepare(directory, needs)
        started.append(running)
        running.storage.start()
        return running

    yield one
    for running in started:
        running.take_down()


@pytest.fixture
def gfarm(start: Prepare) -> Running:
    """One started instance."""
    return start()
