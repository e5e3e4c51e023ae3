"""Agents and disks that hang: who waits for them can go."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.burstio import prefetch_set
from tests.burstio.prefetch_set import ctrl_c_soon, held_by, socket_of
from tests.polling import until

burstio = pytest.importorskip("burstio")
pytestmark = pytest.mark.requires("burstio")


@contextmanager
def stopped_agent(tmp_path: Path) -> Iterator[tuple[Path, burstio.Client]]:
    """Its socket, where it hears nobody, and a client that came before."""
    files = prefetch_set.make(tmp_path / "data")
    with prefetch_set.agent(tmp_path, files) as (socket, process):
        client = burstio.connect(socket)
        threads = Path(f"/proc/{process.pid}/task")
        process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: all(map(_is_stopped, threads.iterdir())), "no thread can answer")
            yield socket, client
        finally:
            process.send_signal(signal.SIGCONT)


def _is_stopped(thread: Path) -> bool:
    return (thread / "stat").read_text().rpartition(") ")[2].startswith("T")


@pytest.mark.parametrize("what", ["connect", "stream", "statistics", "waits", "drain"])
def test_ctrl_c_ends_the_wait_for_a_stopped_agent(tmp_path: Path, what: str) -> None:
    with stopped_agent(tmp_path) as (socket, client):
        act: Callable[[], object] = (
            (lambda: burstio.connect(socket)) if what == "connect" else getattr(client, what)
        )
        with ctrl_c_soon():
            act()


def test_closing_a_client_wakes_who_wants_a_stream_of_a_stopped_agent(tmp_path: Path) -> None:
    told: list[str] = []

    def want_stream() -> None:
        try:
            client.stream()
        except ValueError as error:
            told.append(str(error))

    with stopped_agent(tmp_path) as (_, client):
        thread = threading.Thread(target=want_stream)
        thread.start()
        client.close()
        thread.join(60)
        assert not thread.is_alive()
    assert told == ["the client is closed"]


@pytest.mark.slow
def test_closing_waits_for_no_disk_that_hangs(tmp_path: Path) -> None:
    files, cache = prefetch_set.make(tmp_path / "data"), tmp_path / "cache"

    def make() -> burstio.Engine:
        return burstio.Engine(
            tmp_path / "data", files, cache=cache, segments=False, time_limit_s=0.3
        )

    def drain() -> None:
        with suppress(ConnectionError):
            client.drain()

    def threads_here() -> int:
        return held_by()[1]

    def can_be_made() -> bool:
        with suppress(BlockingIOError):
            make().close()
            return True
        return False

    before = threads_here()
    engine = make()
    hanging = cache / "samples/0/0"
    hanging.parent.mkdir(parents=True)
    os.mkfifo(hanging)  # open(2) does not return, as that of a file on such a disk
    agent = engine.serve(socket_of(tmp_path))
    with engine.stream() as stream:
        stream.plan([0])
        assert len(stream.take(1)) == 1
    client, other = burstio.connect(socket_of(tmp_path)), burstio.connect(socket_of(tmp_path))
    left: list[int] = []
    draining = threading.Thread(target=drain)
    closing = threading.Thread(target=lambda: left.append(agent.close()))
    try:
        draining.start()
        other.statistics()
        closing.start()
        for thread in (draining, closing):
            thread.join(60)
            assert not thread.is_alive()
        assert left[0] >= 1
        assert not can_be_made(), "the writer has the directory still"
    finally:
        os.close(os.open(hanging, os.O_RDONLY | os.O_NONBLOCK))
    until(lambda: threads_here() == before, "the writer has ended")
