"""Nodes of a lab are separate machines for every user, and share what a cluster shares."""

import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import burstio
import pytest

from tests.lab.cluster import NODES, REPOSITORY, Cluster

pytestmark = pytest.mark.requires("root", "netns", "lab")
USERS = ("root", "lab")


def test_every_machine_is_up(cluster: Cluster) -> None:
    lines = [line.split() for line in cluster.must("status").splitlines()]
    assert lines[0] == ["head", "10.77.0.1", "on"]
    assert [line[0] for line in lines[1:-1]] == list(NODES)
    assert lines[-1][:2] == ["pfs", "/pfs/work"]
    assert {line[2] for line in lines} == {"on"}


def test_each_node_has_name_address_and_processes_of_its_own(cluster: Cluster) -> None:
    boot_id = "$(cat /proc/sys/kernel/random/boot_id)"
    script = f"echo $(hostname) $(cat /etc/hostname) $(hostname -I) {boot_id}"
    said = [cluster.run(node, "sh", "-c", script).split() for node in NODES]
    assert [words[:3] for words in said] == [
        [node, node, f"10.77.0.{11 + number}"] for number, node in enumerate(NODES)
    ]
    assert len({words[3] for words in said}) == len(NODES)
    for node in NODES:
        seen = cluster.run(node, "ps", "-e", "-o", "args")
        assert f"slurmd -D -N {node}" in seen
        assert all(other not in seen for other in NODES if other != node)


@pytest.mark.parametrize("directory", ["/tmp", "/var/tmp", "/local", "/dev/shm"])
def test_scratch_is_private_to_a_node_and_open_to_users(cluster: Cluster, directory: str) -> None:
    for node in NODES[:2]:
        cluster.run(node, "touch", f"{directory}/of-{node}")
    assert "of-node02" not in cluster.run("node01", "ls", directory)
    assert not Path(directory, "of-node01").exists()


def test_host_files_are_shared_and_root_owns_them_still(cluster: Cluster) -> None:
    readme = str(REPOSITORY / "pyproject.toml")
    assert cluster.run("node02", "cat", readme, user="root") == Path(readme).read_text()


@pytest.mark.slow
def test_the_lab_keeps_its_users_when_the_host_replaces_its_files(own: Cluster) -> None:
    """As apt-get does under a lab that is up. The host is one with an /etc of its own here."""
    etc = own.base / "etc"
    shutil.copytree("/etc", etc, symlinks=True)
    up = " ".join(own.argv("up", "--nodes", "1"))
    script = f"mount --bind {etc} /etc && exec {up}"
    apart = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    subprocess.run(apart, env=own.environment, cwd=REPOSITORY, check=True, capture_output=True)
    for name in ("passwd", "group", "hosts", "hostname"):
        shutil.copy(etc / name, own.base / "new")
        (own.base / "new").replace(etc / name)
    assert own.run("node01", "id", "-un").strip() == own.run("node01", "id", "-gn").strip() == "lab"
    assert own.run("node01", "sh", "-c", "cat /etc/hostname; getent hosts head").split()[:2] == [
        "node01",
        "10.77.0.1",
    ]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.slow
def test_ssh_runs_between_all_machines_without_asking(cluster: Cluster, user: str) -> None:
    def hop(first: str, second: str) -> str:
        return cluster.run(first, "ssh", second, "echo $(id -un)@$(hostname)", user=user)

    hops = [("head", node) for node in NODES]
    hops += list(zip(NODES, (*NODES[1:], "head"), strict=True))
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(hop, *zip(*hops, strict=True)))
    assert said == [f"{user}@{second}\n" for _, second in hops]


def test_ssh_keys_are_private_and_the_users_own_files_untouched(cluster: Cluster) -> None:
    keys = cluster.directory / "ssh"
    assert {(keys / name).stat().st_mode & 0o777 for name in ("host", *USERS)} == {0o600}
    assert (keys / "lab").stat().st_uid != 0
    assert cluster.run("head", "sh", "-c", "ls -A ~").split() == []


def test_clush_reaches_all_nodes(cluster: Cluster) -> None:
    clush = (sys.executable, "-c", "from ClusterShell.CLI.Clush import main; main()")
    said = cluster.run("head", *clush, "-w", "node[01-04]", "-N", "hostname", user="root")
    assert sorted(said.split()) == list(NODES)


def test_ordinary_user_mounts_fuse_on_a_node(cluster: Cluster) -> None:
    # The checkout and its environment may lie where this user can't read.
    source = cluster.directory / "src"
    shutil.copytree(REPOSITORY / "src/burstlab", source / "burstlab")
    shutil.copytree(Path(burstio.__file__).parent, source / "burstio")
    script = f"""
        mkdir /local/backing /local/mount
        PYTHONPATH={source} /usr/bin/python3 -m burstlab.pfs \\
            /local/mount --export x=/local/backing >/local/log 2>&1 &
        until mountpoint -q /local/mount; do sleep .01; kill -0 $! || exit; done
        echo hello >/local/mount/x/file
        cat /local/backing/file
        fusermount3 -u /local/mount
        wait
    """
    assert cluster.run("node02", "sh", "-c", script) == "hello\n"
    assert "/local/mount" not in cluster.run("node02", "cat", "/proc/mounts")


def test_pfs_is_one_file_system_for_all_machines(cluster: Cluster) -> None:
    for node in NODES:
        cluster.run(node, "sh", "-c", "hostname >/pfs/work/from-$(hostname)")
    assert cluster.run("head", "sh", "-c", "cat /pfs/work/from-*").split() == list(NODES)
    assert cluster.run("head", "stat", "-c", "%U", "/pfs/work/from-node03") == "lab\n"
    assert cluster.run("node01", "df", "--output=source", "/pfs").split()[1] == "burstlab-pfs"


def test_nodes_share_the_bandwidth_of_the_pfs(cluster: Cluster) -> None:
    """At 20 MB/s, two nodes that read 10 MB each can't both be done before a second is over."""
    for name in NODES[:2]:
        (cluster.directory / "pfs" / f"big-{name}").write_bytes(bytes(10_000_000))
    began = time.monotonic()

    def copy(node: str) -> None:
        cluster.run(node, "cp", f"/pfs/work/big-{node}", "/local/big")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(copy, NODES[:2]))
    assert time.monotonic() - began >= 1.0
