"""What a staging tells while it runs, and of what arrived."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from burstlab.dataset.manifest import read_manifest
from burstlab.errors import StagingError
from burstlab.lease import Lease
from burstlab.nodes import VirtualNodes
from burstlab.staging.hosts import Staging
from burstlab.staging.watching import Watching
from tests.staging.conftest import Stage

Told = list[tuple[str, int, int]]


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualNodes]:
    monkeypatch.setenv("BURSTLAB_STATE", str(tmp_path / "state"))
    lease = Lease.create(command=["stage"])
    yield VirtualNodes(lease.directory(tmp_path / "scratch"), 2, lease)
    assert lease.clean() == []
    lease.release()


def staging(stage: Stage, nodes: VirtualNodes, told: Told, files: int = 60) -> Staging:
    """A staging of a data set that has, as far as it knows, so many files."""
    manifest = replace(read_manifest(stage.manifest), file_count=files)
    targets = {host.name: stage.target / host.name for host in nodes.hosts}
    return Staging(nodes, manifest, stage.source, targets, lambda *what: told.append(what))


def test_who_watches_sees_rates_and_the_time_left() -> None:
    now = 0.0
    console = Console(file=io.StringIO(), width=120)
    watching = Watching(100_000_000, console, lambda: now)

    def shown() -> str:
        console.print(watching.get_renderable())
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue().splitlines()[-1]

    watching.tell("copy", 0, 0)
    assert "0 files" not in shown()
    now = 10.0
    watching.tell("copy", 20, 10_000_000)
    assert "20 files, 2 files/s, 10.0 of 100.0 MB" in shown()
    now = 20.0
    watching.tell("copy", 60, 60_000_000)
    assert "60 files, 3 files/s, 60.0 of 100.0 MB, 5.0 MB/s, 0:00:08 left" in shown()


@pytest.mark.requires("burstio", "staging")
@pytest.mark.parametrize(
    ("method", "last"), [("copy", "copy"), ("tree", "broadcast"), ("shard", "copy"),
                         ("archive", "verify"), ("paper", "verify")],
)  # fmt: skip
def test_at_the_end_all_is_counted(
    stage: Stage, nodes: VirtualNodes, method: str, last: str
) -> None:
    told: Told = []
    staged = staging(stage, nodes, told).run(method)
    size_bytes = sum(map(len, stage.files.values()))
    assert told[-1] == (last, 60, size_bytes)
    assert (staged.arrived, staged.files, staged.size_bytes) == (60, 60, size_bytes)
    assert all(size == 0 for phase, _, size in told if phase == "unpack")


@pytest.mark.requires("burstio")
@pytest.mark.parametrize(("method", "whose"), [("copy", "node01"), ("shard", "all hosts")])
def test_less_than_the_manifest_had_when_it_was_read_is_an_error(
    stage: Stage, nodes: VirtualNodes, method: str, whose: str
) -> None:
    """As when it is made anew meanwhile."""
    with pytest.raises(StagingError, match=f"^{whose}: 60 files of 61 arrived: stage again$"):
        staging(stage, nodes, [], files=61).run(method)
