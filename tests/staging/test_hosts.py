"""Staging to several real hosts: the lab's nodes, reached through ssh and an agent on each."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cells import command_line, pids_on
from tests.lab.cluster import NODES, Cluster
from tests.polling import until

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


def command(method: str, target: str, data: str = "staging") -> list[str]:
    """`burstlab stage` to all nodes of the lab."""
    words = ["stage", f"/pfs/work/{data}/manifest.json", target, "--hosts", "node[01-04]"]
    words += ["--launch", "ssh", "--method", method]
    return [sys.executable, "-m", "burstlab", *words]


def stage(cluster: Cluster, method: str, target: str) -> str:
    return cluster.run("node01", *command(method, target))


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
    argv = command("tree", "/local/full")
    done = cluster.lab("exec", "--user", "lab", "node01", "--", *argv)
    assert done.returncode == 123
    assert "node03: " in done.stderr
    assert "no room in the target" in done.stderr


@pytest.mark.parametrize("method", ["copy", "tree"])
def test_killed_host_is_the_reason_that_is_told_and_the_others_end(
    cluster: Cluster, method: str
) -> None:
    """One file is a pipe nobody writes to: no host gets it before one of them is killed."""
    data, target = f"killed-{method}", f"/local/killed-{method}"
    cluster.run("node01", "mkdir", f"/pfs/work/{data}")
    cluster.run("node01", sys.executable, "-c", MAKE, f"/pfs/work/{data}")
    hanging = cluster.directory / "pfs" / data / "data/d0/f0"
    content = hanging.read_bytes()
    hanging.unlink()
    os.mkfifo(hanging)
    argv = command(method, target, data)
    running = cluster.start("exec", "--user", "lab", "node01", "--", *argv)
    there = Path(f"/proc/{cluster.machines()['node03']}/root{target}")
    until(lambda: running.poll() is not None or len(list(there.glob("d*/f*"))) == 79, "79 files")
    os.kill(agents(cluster, "node03")[0], signal.SIGKILL)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 123, said
    assert "node03: its agent died (killed by SIGKILL)" in said
    until(lambda: not any(agents(cluster, node) for node in NODES), "all agents have ended")
    for node in ("node01", "node02", "node04"):
        assert cluster.run(node, "find", target, "-name", "*.burstlab-partial") == ""
    hanging.unlink()
    hanging.write_bytes(content)
    told = cluster.run("node01", *argv)
    assert "80 files of 80" in told
    assert "(316 were there)" in told


def agents(cluster: Cluster, node: str) -> list[int]:
    """Those of burstlab on a node: pids on this host."""
    wanted = ["-m", "burstlab.agent"]
    return [pid for pid in pids_on(cluster, node) if command_line(pid)[1:3] == wanted]
