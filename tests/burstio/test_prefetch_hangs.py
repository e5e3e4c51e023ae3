"""Agents that hang: who waits for them can go."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.burstio import prefetch_set
from tests.burstio.prefetch_set import ctrl_c_soon

burstio = pytest.importorskip("burstio")
pytestmark = pytest.mark.requires("burstio")


@contextmanager
def stopped_agent(tmp_path: Path) -> Iterator[tuple[Path, burstio.Client]]:
    """Its socket, where it hears nobody, and a client that came before."""
    files = prefetch_set.make(tmp_path / "data")
    with prefetch_set.agent(tmp_path, files) as (socket, process):
        client = burstio.connect(socket)
        process.send_signal(signal.SIGSTOP)
        try:
            yield socket, client
        finally:
            process.send_signal(signal.SIGCONT)


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
