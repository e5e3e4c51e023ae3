"""The costs as a client meets them.

Only lower bounds are looked at: they hold however slow the machine is. That latencies of several
clients overlap is shown by costs that would add up to more than the deadline otherwise.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.pfs.emulator import emulated

pytestmark = pytest.mark.requires("fuse", "burstio")
MB = 1_000_000


def timed(function, *arguments) -> float:
    began = time.monotonic()
    function(*arguments)
    return time.monotonic() - began


def test_a_read_and_a_create_take_their_latencies(tmp_path: Path):
    with emulated(tmp_path, "--metadata-latency-ms=100", "--io-latency-ms=150") as running:
        (running.backing / "file").write_bytes(b"x")
        assert timed((running.work / "file").read_bytes) >= 0.1 + 0.1 + 0.15  # lookup, open, read
        assert timed((running.work / "new").touch) >= 0.1
        assert timed(lambda: (running.work / "absent").exists()) >= 0.1


@pytest.mark.slow
def test_a_new_file_costs_its_lookup_and_its_creation_and_no_attributes(tmp_path: Path):
    with emulated(tmp_path, "--metadata-latency-ms=500", "--io-latency-ms=0") as running:
        (running.work / "warm").touch()
        seconds = timed(lambda: os.close(os.open(running.work / "new", os.O_CREAT | os.O_WRONLY)))
        assert 2 * 0.5 <= seconds < 4 * 0.5


def test_what_is_known_already_costs_nothing_more(tmp_path: Path):
    with emulated(tmp_path, "--metadata-latency-ms=0", "--io-latency-ms=500") as running:
        (running.backing / "file").write_bytes(b"content")
        (running.work / "file").read_bytes()
        assert timed(lambda: [(running.work / "file").read_bytes() for _ in range(40)]) < 20


def test_a_walk_costs_one_operation_a_batch_and_not_one_a_file(tmp_path: Path):
    with emulated(tmp_path, "--metadata-latency-ms=200") as running:
        for number in range(500):
            (running.backing / f"file{number}").touch()
        with os.scandir(running.work) as entries:
            seconds = timed(lambda: [entry.stat() for entry in entries])
        assert seconds < 500 * 0.2 / 5


def test_all_readers_together_get_the_bandwidth_once(tmp_path: Path):
    with emulated(tmp_path, "--bandwidth-mb-s=20", "--io-latency-ms=0") as running:
        for number in range(4):
            (running.backing / f"file{number}").write_bytes(bytes(2 * MB))
        files = list(running.work.iterdir())
        with ThreadPoolExecutor(4) as pool:
            seconds = timed(lambda: list(pool.map(Path.read_bytes, files)))
        assert seconds >= 8 / 20


def test_what_was_written_is_paid_for_at_close(tmp_path: Path):
    with emulated(tmp_path, "--bandwidth-mb-s=20", "--io-latency-ms=100") as running:
        assert timed((running.work / "file").write_bytes, bytes(8 * MB)) >= 8 / 20 + 0.1


def test_the_metadata_rate_is_shared_by_all_clients(tmp_path: Path):
    flags = ("--metadata-latency-ms=0", "--metadata-rate=300")
    with emulated(tmp_path, *flags) as running, ThreadPoolExecutor(8) as pool:
        names = [running.work / f"file{number}" for number in range(60)]
        assert timed(lambda: list(pool.map(Path.touch, names))) >= 0.59


def test_latencies_of_many_clients_overlap(tmp_path: Path):
    with emulated(tmp_path, "--metadata-latency-ms=250", "--io-latency-ms=250") as running:
        for number in range(40):
            (running.backing / f"file{number}").write_bytes(b"x")
        files = list(running.work.iterdir())  # looked up with this: see docs/emulated-pfs.md
        with ThreadPoolExecutor(40) as pool:
            assert timed(lambda: list(pool.map(Path.read_bytes, files))) < 40 * 0.5 / 2


@pytest.mark.slow
def test_more_operations_wait_at_once_than_it_has_threads(tmp_path: Path):
    """It has 32: so many at once would take more than 6 s."""
    with emulated(tmp_path, "--metadata-latency-ms=1000") as running:
        names = [running.work / f"absent{number}" for number in range(200)]
        with ThreadPoolExecutor(200) as pool:
            assert timed(lambda: list(pool.map(Path.exists, names))) < 200 * 1 / 32
