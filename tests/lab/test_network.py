"""Links between machines are as fast as they are shaped to be."""

import time

import pytest

from tests.lab.cluster import Cluster

pytestmark = [pytest.mark.requires("root", "netns", "lab"), pytest.mark.slow]


def test_a_shaped_link_carries_no_more_than_it_is_shaped_to(own: Cluster) -> None:
    """10 MB at 80 Mbit/s take a second, but for the bucket of 64 KiB at either end."""
    own.must("up", "--nodes", "2", "--shape-mbit", "80")
    own.run("node01", "dd", "if=/dev/zero", "of=/local/file", "bs=1M", "count=10")
    began = time.monotonic()
    own.run("node01", "sh", "-c", "ssh node02 'cat >/local/file' </local/file")
    assert time.monotonic() - began >= 1.0
    assert own.run("node02", "stat", "-c", "%s", "/local/file") == "10485760\n"


def test_nodes_reach_each_other_and_nothing_else(own: Cluster) -> None:
    own.must("up", "--nodes", "1")
    routes = own.run("node01", "ip", "route").splitlines()
    assert [line.split()[0] for line in routes] == ["10.77.0.0/24"]
