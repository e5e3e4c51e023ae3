"""Agents of two nodes that read for one another, both on this machine."""

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.burstio import prefetch_set
from tests.burstio.prefetch_set import COUNT, content, socket_of

burstio = pytest.importorskip("burstio")
pytestmark = pytest.mark.requires("burstio")

NAMES = ("n1", "n2")


class Node(NamedTuple):
    process: subprocess.Popen[str]
    client: burstio.Client


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return prefetch_set.make(tmp_path / "data")


@contextmanager
def starting(
    tmp_path: Path, name: str, files: list[str]
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A node's agent that has no peers yet, and where it listens for them."""
    directory = tmp_path / name
    directory.mkdir()
    options = ["--root", tmp_path / "data", "--cache", directory / "cache"]
    options += ["--peers", name, "127.0.0.1"]
    with prefetch_set.starting(directory, files, *options) as process:
        assert process.stdout
        word, address = process.stdout.readline().split()
        assert word == "listening"
        yield process, address


@contextmanager
def two_nodes(tmp_path: Path, files: list[str]) -> Iterator[list[Node]]:
    with ExitStack() as stack:
        started = {name: stack.enter_context(starting(tmp_path, name, files)) for name in NAMES}
        addresses = {name: address for name, (_, address) in started.items()}
        told = json.dumps({"key": secrets.token_hex(32), "addresses": addresses})
        for process, _ in started.values():
            assert process.stdin and process.stdout
            process.stdin.write(told + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ready\n"
        yield [
            Node(process, burstio.connect(socket_of(tmp_path / name)))
            for name, (process, _) in started.items()
        ]


def read(client: burstio.Client, seed: int) -> None:
    """An epoch, every sample of which must be the right one."""
    with burstio.Reader(client, burstio.shuffled(COUNT, seed), 16, epochs=1) as reader:
        got = [index for batch in reader for index, sample in batch if right(index, sample)]
    assert sorted(got) == list(range(COUNT))
    client.drain()


def right(index: int, sample: burstio.Sample) -> bool:
    return bytes(sample) == content(index)


def total(nodes: list[Node], name: str) -> int:
    return sum(node.client.statistics()[name] for node in nodes)


def test_two_agents_read_each_file_once(tmp_path: Path, files: list[str]) -> None:
    with two_nodes(tmp_path, files) as nodes:
        for seed in range(2):
            for node in nodes:
                read(node.client, seed)
        assert total(nodes, "source_opens") == total(nodes, "cache_samples") == COUNT
        assert total(nodes, "from_peers") == total(nodes, "served_to_peers") == 2 * COUNT
        assert total(nodes, "peer_errors") == 0


def test_a_killed_agent_is_done_without(tmp_path: Path, files: list[str]) -> None:
    with two_nodes(tmp_path, files) as (one, other):
        with one.client.stream() as stream:
            stream.plan(range(COUNT))
            first = [index for index, sample in stream.take(16) if right(index, sample)]
            os.kill(other.process.pid, signal.SIGKILL)
            other.process.wait()
            rest = [index for index, sample in stream.take(COUNT) if right(index, sample)]
        assert first + rest == list(range(COUNT))
        read(one.client, 1)  # what the other owned is read from the source
        assert one.client.statistics()["peer_errors"] > 0


def test_peers_are_of_one_engine(tmp_path: Path, files: list[str]) -> None:
    listener = burstio.peers.listen("127.0.0.1")
    addresses = {"n1": burstio.peers.address_of(listener)}
    peers = burstio.Peers("n1", addresses, b"secret".ljust(32), listener)
    assert "n1" in repr(peers) and "secret" not in repr(peers)
    with (
        burstio.Engine(tmp_path / "data", files, peers=peers),
        pytest.raises(ValueError, match="taken over"),
    ):
        burstio.Engine(tmp_path / "data", files, peers=peers)


@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_an_agent_that_waits_for_peers_can_be_ended(
    tmp_path: Path, files: list[str], end: str
) -> None:
    with starting(tmp_path, "n1", files) as (process, _):
        assert process.stdin
        if end == "stdin":
            process.stdin.close()
            assert process.wait(60) == 2
        else:
            process.terminate()
            assert process.wait(60) == -signal.SIGTERM
