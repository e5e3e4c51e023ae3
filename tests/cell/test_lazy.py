"""Cells whose data set comes while they run."""

import os
import signal
import sys
from pathlib import Path

import pytest

from burstlab.dataset.writing import scan, write_manifest
from burstlab.lazy import issues
from tests.burstio import prefetch_set
from tests.burstio.prefetch_set import COUNT, content
from tests.cell.running import Place
from tests.polling import until

pytestmark = pytest.mark.requires("burstio", "fuse")

READ_ALL = """
import os, pathlib, sys
root = pathlib.Path(os.environ["BURSTLAB_DATA"])
found = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
print(len(found), sum(map(len, found)))
"""
ASK_AGENT = """
import os, burstio
client = burstio.connect(os.environ["BURSTLAB_AGENT"])
with burstio.Reader(client, burstio.shuffled(client.count, 1), 16, epochs=2) as reader:
    print(sum(len(sample) for batch in reader for _, sample in batch))
"""
TWO_CACHED = """
import os, burstio
from tests.polling import until
client = burstio.connect(os.environ["BURSTLAB_AGENT"])
until(lambda: client.statistics()["cache_samples"] >= 2, "two samples in the cache")
"""
SIZE = sum(len(content(i)) for i in range(COUNT))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    files = prefetch_set.make(tmp_path / "data")
    path = tmp_path / "manifest.json"
    root = tmp_path / "data"
    write_manifest(
        path, scan(root, files), name="numbers", source="given", details={}, root=root,
        patterns=("**",),
    )  # fmt: skip
    return path


def lazy(manifest: Path) -> list[str | Path]:
    return ["--storage", "nodelocal", "--staging", "lazy", "--dataset", manifest]


@pytest.mark.parametrize("nodes", ["1", "2"])
def test_a_program_reads_its_directory_and_each_file_is_read_once(
    place: Place, manifest: Path, nodes: str
) -> None:
    done = place.run(*lazy(manifest), "--nodes", nodes, run=[sys.executable, "-c", READ_ALL])
    assert done.returncode == 0, done.stderr
    assert (place.cell / "workload.log").read_text() == f"{COUNT} {SIZE}\n"
    record = place.record()
    assert record
    [counted] = record["dataset"]["lazy"].values()
    assert (counted["source_opens"], counted["source_bytes"]) == (COUNT, SIZE)
    assert counted["cache_samples"] == COUNT
    assert "stage_in" in [span["name"] for span in record["spans"]]
    assert place.left_behind() == []


def test_a_program_that_knows_asks_the_agent(place: Place, manifest: Path) -> None:
    flags = [*lazy(manifest), "--pfs", "emulated", "--cache", "cold"]
    done = place.run(*flags, run=[sys.executable, "-c", ASK_AGENT])
    assert done.returncode == 0, done.stderr
    assert (place.cell / "workload.log").read_text() == f"{2 * SIZE}\n"
    record = place.record()
    assert record
    [counted] = record["dataset"]["lazy"].values()
    assert counted["source_opens"] == COUNT
    assert place.left_behind() == []


def test_the_cache_is_filled_with_the_files_of_the_list(place: Place, manifest: Path) -> None:
    """In which order: tests/burstio/test_prefetch_cache.py."""
    order = place.root / "order"
    order.write_text("3/199\n2/198\n")
    done = place.run(*lazy(manifest), "--order", order, run=[sys.executable, "-c", TWO_CACHED])
    assert done.returncode == 0, done.stderr
    record = place.record()
    assert record
    [counted] = record["dataset"]["lazy"].values()
    assert counted["source_opens"] == counted["cache_samples"] == 2
    assert counted["source_bytes"] == len(content(199)) + len(content(198))


def test_a_list_that_names_no_file_is_told(place: Place, manifest: Path) -> None:
    order = place.root / "order"
    order.write_text("nobody\n")
    done = place.run(*lazy(manifest), "--order", order, run=["true"])
    assert done.returncode != 0
    record = place.record()
    assert record
    assert f"{order}: nobody: not in the data set" in record["reason"]
    assert place.left_behind() == []


def test_virtual_nodes_have_no_peers(place: Place, manifest: Path) -> None:
    done = place.run(*lazy(manifest), "--nodes", "2", "--peers", run=["true"])
    assert done.returncode != 0
    assert "--peers: " in done.stderr and "virtual nodes share one" in done.stderr
    assert place.record() is None


def test_what_went_wrong_at_an_agent_is_told() -> None:
    well = {"peer_errors": 0, "peer_faults": [], "checksum_failures": 0}
    assert issues({"n1": well, "n2": {**well, "checksum_failures": 2}, "n3": {"ended": "how"}}) == [
        "n2: 2 files were damaged in the cache: the PFS was read again",
        "n3: its agent did not end in order: how",
    ]


def test_peers_that_did_not_answer_are_told() -> None:
    faults = ["n1 (10.0.0.1:4711): timed out", "n3 (10.0.0.3:4712): Connection refused"]
    well = {"peer_errors": 0, "peer_faults": []}
    assert issues({"n1": well, "n2": {"peer_errors": 3, "peer_faults": faults}}) == [
        "n2: 3 questions to peers were not answered: the PFS was read for them; first: "
        "n1 (10.0.0.1:4711): timed out, n3 (10.0.0.3:4712): Connection refused"
    ]


def test_a_killed_agent_is_the_reason(place: Place, manifest: Path) -> None:
    with place.start(*lazy(manifest), run=["sleep", "60"]) as cell:
        agents = until(lambda: _agents(place), "an agent")
        until(lambda: (place.cell / "workload.log").exists(), "the workload")
        os.kill(agents[0], signal.SIGKILL)
        assert cell.wait(60) != 0
    record = place.record()
    assert record
    assert "burstio agent" in record["reason"]
    assert place.left_behind() == []


def test_a_killed_cell_is_reaped(place: Place, manifest: Path) -> None:
    with place.start(*lazy(manifest), run=["sleep", "60"]) as cell:
        until(lambda: (place.cell / "workload.log").exists(), "the workload")
        cell.kill()
    assert place.reap().returncode == 0
    assert place.left_behind() == []


def test_a_file_that_vanished_is_an_error_of_the_one_who_reads_it(
    place: Place, manifest: Path
) -> None:
    order = place.root / "order"
    order.write_text("3/3\n")  # or it might be there already
    script = f'rm {place.root}/data/2/2; cat "$BURSTLAB_DATA/2/2"'
    done = place.run(*lazy(manifest), "--order", order, run=["sh", "-c", script])
    assert done.returncode == 1
    assert "2/2: No such file" in (place.cell / "workload.log").read_text()
    assert place.left_behind() == []


def _agents(place: Place) -> list[int]:
    found = []
    for pid in place.processes():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"burstio.agent" in command and b"sh\0-c" not in command:
            found.append(pid)
    return found
