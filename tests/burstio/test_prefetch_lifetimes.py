"""What is left of engines, agents and ranks, however they end."""

import os
import re
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.burstio import prefetch_set
from tests.burstio.prefetch_set import COUNT, content, ctrl_c_soon, held_by, in_both_layouts
from tests.polling import until

burstio = pytest.importorskip("burstio")
pytestmark = pytest.mark.requires("burstio")

RANK = """
import burstio, sys, time
with burstio.connect(sys.argv[1]).stream() as stream:
    stream.plan(list(range(200)) * 50)
    held = stream.take(100)
    print("holds", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return prefetch_set.make(tmp_path / "data")


@pytest.mark.slow
def test_a_thousand_engines_leave_nothing(tmp_path: Path, files: list[str]) -> None:
    def cycle() -> None:
        engine = burstio.Engine(
            tmp_path / "data", files[:20], cache=tmp_path / "cache", memory_bytes=1 << 20
        )
        with engine, burstio.Reader(engine, burstio.shuffled(20, 1), 8, epochs=1) as reader:
            next(reader)

    cycle()
    before = held_by()
    for _ in range(1000):
        cycle()
    assert held_by() == before
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


def test_an_engine_that_can_not_be_made_leaves_nothing(tmp_path: Path, files: list[str]) -> None:
    def make(most_files: int) -> burstio.Engine:
        listener = burstio.peers.listen("127.0.0.1")
        addresses = {"n1": burstio.peers.address_of(listener)}
        peers = burstio.Peers("n1", addresses, bytes(32), listener)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, before[1]))
        try:
            return burstio.Engine(tmp_path / "data", files, cache=tmp_path / "cache", peers=peers)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)

    make(1024).close()
    before = held_by()
    failed = 0
    for most_files in range(1, 1024):  # each time another descriptor is the first it can't have
        try:
            make(most_files).close()
            break
        except OSError:
            failed += 1
            assert held_by() == before
    assert failed > 3


def test_a_thousand_ranks_leave_nothing_in_the_agent(tmp_path: Path, files: list[str]) -> None:
    with prefetch_set.agent(tmp_path, files) as (socket, process):
        before = held_by()
        for _ in range(1000):
            with burstio.connect(socket).stream() as stream:
                stream.plan(range(20))
                stream.take(3)
        del stream
        assert held_by() == before
        until(
            lambda: not any("socket" in link for link in _connections(process.pid)),
            "the connections are closed",
        )
        client = burstio.connect(socket)
        until(lambda: client.statistics()["memory_used"] == 0, "all memory is given back")


def _connections(pid: int) -> list[str]:
    sockets = [link for link in held_by(pid)[0] if link.startswith("socket:")]
    return sockets[1:]  # it listens at one


def test_a_killed_rank_gives_its_memory_back(tmp_path: Path, files: list[str]) -> None:
    with prefetch_set.agent(tmp_path, files) as (socket, _):
        client = burstio.connect(socket)
        with subprocess.Popen(
            [sys.executable, "-c", RANK, socket], stdout=subprocess.PIPE, text=True
        ) as rank:
            assert rank.stdout
            assert rank.stdout.readline() == "holds\n"
            assert client.statistics()["memory_used"] > 0
            rank.kill()
        until(lambda: client.statistics()["memory_used"] == 0, "all memory is given back")
        with client.stream() as stream:
            stream.plan(range(COUNT))
            assert all(bytes(sample) == content(i) for i, sample in stream.take(COUNT))


@in_both_layouts
def test_a_killed_agent_leaves_nothing_to_the_next_that_takes_over(
    tmp_path: Path, files: list[str], segments: bool
) -> None:
    cache = tmp_path / "cache"
    layout = [] if segments else ["--no-segments"]
    shared = set(Path("/dev/shm").iterdir())
    with prefetch_set.agent(tmp_path, files, "--cache", cache, *layout) as (socket, process):
        with burstio.connect(socket).stream() as stream:
            stream.plan(list(range(COUNT)) * 2)
            stream.take(COUNT)
            burstio.connect(socket).drain()
            process.kill()
            process.wait()
            with pytest.raises(ConnectionError, match=str(socket)):
                for _ in range(COUNT):
                    stream.take(1)
        left = [path.name for path in cache.rglob("*") if path.is_file()]
        assert len(left) == (1 if segments else 1 + COUNT), "the lock; segments have no name"
        assert set(Path("/dev/shm").iterdir()) <= shared
    with prefetch_set.agent(tmp_path, files, "--cache", cache, *layout) as (socket, _):
        client = burstio.connect(socket)
        assert client.statistics()["cache_adopted"] == 0
        assert [path.name for path in cache.iterdir()] == ["lock"]
        with client.stream() as stream:
            stream.plan(range(COUNT))
            assert all(bytes(sample) == content(i) for i, sample in stream.take(COUNT))


def test_all_ranks_of_a_node_read_each_file_once(tmp_path: Path, files: list[str]) -> None:
    rank = f"""
import burstio, sys
order = burstio.shuffled({COUNT}, int(sys.argv[2]))
with burstio.Reader(burstio.connect(sys.argv[1]), order, 16, epochs=3) as reader:
    print(sum(len(sample) for batch in reader for _, sample in batch))
"""
    with prefetch_set.agent(tmp_path, files, "--cache", tmp_path / "cache") as (socket, _):
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", rank, socket, str(seed)], stdout=subprocess.PIPE, text=True
            )
            for seed in range(4)
        ]
        size = 3 * sum(len(content(i)) for i in range(COUNT))
        assert [int(rank.communicate(timeout=60)[0]) for rank in ranks] == [size] * 4
        assert burstio.connect(socket).statistics()["source_opens"] == COUNT


def test_an_agents_memory_stays_within_its_budget(tmp_path: Path) -> None:
    root, size, count = tmp_path / "data", 100_000, 600
    root.mkdir()
    names = [str(i) for i in range(count)]
    for name in names:
        (root / name).write_bytes(name.encode().ljust(size, b"."))
    budget = 8 << 20
    flags = ("--memory-bytes", budget, "--cache", tmp_path / "cache")
    with prefetch_set.agent(tmp_path, names, *flags) as (socket, process):
        before = _most_memory(process.pid)
        with burstio.Reader(burstio.connect(socket), burstio.in_order(count), 16, epochs=3) as all_:
            for batch in all_:
                assert all(bytes(sample[:8]).startswith(b"%d" % i) for i, sample in _views(batch))
        grown = _most_memory(process.pid) - before
    minibatches = 2 * 16 * size  # one that is waited for, one that is held
    assert grown < budget + minibatches + (8 << 20), "the rest is for threads"


def _most_memory(pid: int) -> int:
    """The most that ever was resident, shared memory included [byte]."""
    [line] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(line) * 1024


def _views(batch: list) -> list[tuple[int, memoryview]]:
    return [(index, memoryview(sample)) for index, sample in batch]


def test_closing_a_client_wakes_who_waits_for_its_agent(tmp_path: Path, files: list[str]) -> None:
    stalled = tmp_path / "data" / files[0]
    stalled.unlink()
    os.mkfifo(stalled)
    told: list[BaseException] = []

    def wait_for(act: Callable[[], object]) -> threading.Thread:
        def waiting() -> None:
            try:
                act()
            except Exception as error:
                told.append(error)

        thread = threading.Thread(target=waiting)
        thread.start()
        return thread

    with prefetch_set.agent(tmp_path, files, "--time-limit-s", 600) as (socket, _):
        client, other = burstio.connect(socket), burstio.connect(socket)
        stalling, idle = client.stream(), client.stream()
        idle.plan([1, 2])
        [(_, held)] = idle.take(1)
        stalling.plan([0])
        threads = [wait_for(lambda: stalling.take(1))]
        until(lambda: other.statistics()["in_flight"] == 1, "the source is asked for the file")
        client.close()
        client.close()
        for act in (client.stream, client.statistics, client.drain, lambda: idle.take(1)):
            threads.append(wait_for(act))
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert [str(error) for error in told] == ["the client is closed"] * 5
        assert {type(error) for error in told} == {ValueError}
        assert bytes(held) == content(1)
        with other.stream() as stream:
            stream.plan([3])
            assert len(stream.take(1)) == 1
        os.close(os.open(stalled, os.O_RDWR))


def test_a_forked_child_is_told_to_make_its_own(tmp_path: Path, files: list[str]) -> None:
    with burstio.Engine(tmp_path / "data", files) as engine, engine.stream() as stream:
        stream.plan(range(4))
        child = os.fork()
        if child == 0:
            try:
                stream.take(1)
            except RuntimeError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert len(stream.take(4)) == 4


def test_an_agents_directory_must_be_private(tmp_path: Path, files: list[str]) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(0o755)
    engine = burstio.Engine(tmp_path / "data", files)
    with engine, pytest.raises(PermissionError, match="0700"):
        engine.serve(open_to_all / "socket")


def test_ctrl_c_ends_a_wait(tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "data" / files[0]).unlink()
    os.mkfifo(tmp_path / "data" / files[0])
    with burstio.Engine(tmp_path / "data", files) as engine, engine.stream() as stream:
        stream.plan([0])
        with ctrl_c_soon():
            stream.take(1)
        os.close(os.open(tmp_path / "data" / files[0], os.O_WRONLY))
