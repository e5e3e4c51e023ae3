"""Staging to several real hosts: the lab's nodes, reached through ssh and an agent on each."""

import sys
from collections.abc import Iterator

import pytest

from tests.lab.cluster import NODES, Cluster

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "ssh", "burstio", "staging"),
    pytest.mark.slow,
]

MAKE = """
import random, sys
from pathlib import Path
from burstlab.dataset.writing import scan, write_manifest
chance, top = random.Random(3), Path(sys.argv[1])
paths = [f"d{number % 4}/f{number}" for number in range(80)]
for path in paths:
    (top / "data" / path).parent.mkdir(parents=True, exist_ok=True)
    (top / "data" / path).write_bytes(chance.randbytes(chance.randrange(200_000)))
write_manifest(top / "manifest.json", scan(top / "data", sorted(paths)), name="some",
               source="synthetic", details={}, root=top / "data", patterns=["*/*"])
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "4")
        cluster.run("node01", "mkdir", "/pfs/work/staging")
        cluster.run("node01", sys.executable, "-c", MAKE, "/pfs/work/staging")
        yield cluster


def stage(cluster: Cluster, method: str, target: str) -> str:
    words = ["stage", "/pfs/work/staging/manifest.json", target, "--hosts", "node[01-04]"]
    words += ["--launch", "ssh", "--method", method]
    return cluster.run("node01", sys.executable, "-m", "burstlab", *words)


def sums(cluster: Cluster, node: str, directory: str) -> set[str]:
    """What `sha256sum` says of the files below a directory."""
    command = f"cd {directory} && find . -type f -print0 | sort -z | xargs -0 sha256sum"
    return set(cluster.run(node, "sh", "-c", command).splitlines())


@pytest.mark.parametrize("method", ["copy", "tree", "archive", "paper"])
def test_every_host_gets_everything_on_its_own_disk(cluster: Cluster, method: str) -> None:
    told = stage(cluster, method, f"/local/{method}")
    assert "80 files of 80" in told
    assert "on 4 hosts" in told
    wanted = sums(cluster, "node01", "/pfs/work/staging/data")
    assert len(wanted) == 80
    for node in NODES:
        assert sums(cluster, node, f"/local/{method}") == wanted


def test_every_host_gets_its_shard(cluster: Cluster) -> None:
    stage(cluster, "shard", "/local/shard")
    parts = [sums(cluster, node, "/local/shard") for node in NODES]
    assert [len(part) for part in parts] == [20] * 4
    assert set().union(*parts) == sums(cluster, "node01", "/pfs/work/staging/data")


def test_full_disk_of_one_host_is_the_reason_that_is_told(cluster: Cluster) -> None:
    """Its neighbours in the tree lose a connection, which is not the reason."""
    script = "mkdir /local/full && mount -t tmpfs -o size=1m tmpfs /local/full"
    cluster.must("exec", "--user", "root", "node03", "--", "sh", "-c", script)
    cluster.must("exec", "--user", "root", "node03", "--", "chmod", "777", "/local/full")
    words = ["/pfs/work/staging/manifest.json", "/local/full", "--hosts", "node[01-04]"]
    argv = [sys.executable, "-m", "burstlab", "stage", *words, "--launch", "ssh"]
    done = cluster.lab("exec", "--user", "lab", "node01", "--", *argv, "--method", "tree")
    assert done.returncode == 123
    assert "node03: " in done.stderr
    assert "no room in the target" in done.stderr
