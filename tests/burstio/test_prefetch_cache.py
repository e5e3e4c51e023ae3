"""What the cache takes of the local disk, and what a later run makes of what a killed one left."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.burstio import prefetch_set
from tests.burstio.prefetch_set import COUNT, content, held_by, in_both_layouts
from tests.polling import until

burstio = pytest.importorskip("burstio")
pytestmark = pytest.mark.requires("burstio")

KILLED = """
import ast, burstio, sys
root, options = sys.argv[1], ast.literal_eval(sys.argv[2])
files = [f"{index % 7}/{index}" for index in range(200)]
with burstio.Engine(root, files, **options) as engine, engine.stream() as stream:
    stream.plan(list(range(200)) * 1000)
    print("begins", flush=True)
    while stream.take(10):
        pass
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return prefetch_set.make(tmp_path / "data")


def kill_a_run(tmp_path: Path, moment_s: float, **options: object) -> None:
    """Any moment will do: nothing is asserted of how far it came."""
    given = {"cache": str(tmp_path / "cache"), "identity": "1", **options}
    command = [sys.executable, "-c", KILLED, tmp_path / "data", repr(given)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout
        assert killed.stdout.readline() == "begins\n"
        time.sleep(moment_s)
        killed.kill()


@pytest.mark.requires("fuse")
@pytest.mark.parametrize("order", [[3, 2], [2, 3]])
def test_a_mounted_cache_is_filled_in_the_order_of_the_list(
    tmp_path: Path, files: list[str], order: list[int]
) -> None:
    """There is room for one file only, and files have sizes by which they are known."""
    (tmp_path / "mount").mkdir()
    room = {"cache": tmp_path / "cache", "cache_bytes": 1.5 * len(content(3))}
    with (
        burstio.Engine(tmp_path / "data", files, in_flight=(1, 1), **room) as engine,
        engine.mount(tmp_path / "mount", order),
    ):
        until(lambda: engine.statistics()["cache_full"], "the second file")
        engine.drain()
        counted = engine.statistics()
    assert counted["cache_samples"] == 1
    assert counted["cache_bytes_written"] == 64 + len(content(order[0])), "with its header"


@in_both_layouts
def test_an_open_cache_holds_no_file_but_segments(
    tmp_path: Path, files: list[str], segments: bool
) -> None:
    cache = tmp_path / "cache"
    with burstio.Engine(tmp_path / "data", files, cache=cache, segments=segments) as engine:
        with burstio.Reader(engine, burstio.in_order(COUNT), 10, epochs=1) as reader:
            assert sum(len(batch) for batch in reader) == COUNT
        engine.drain()
        held = [link for link in held_by()[0] if link.startswith(f"{cache}/")]
        named = [path for path in cache.rglob("*") if path.is_file()]
        assert len(held) == (2 if segments else 1), "the lock, and the one segment"
        assert len(named) == (1 if segments else 1 + COUNT)


@in_both_layouts
@pytest.mark.parametrize("moment_s", [0.0, 0.003, 0.01, 0.03, 0.1])
def test_what_a_killed_run_kept_is_checked_before_it_is_used(
    tmp_path: Path, files: list[str], moment_s: float, segments: bool
) -> None:
    kill_a_run(tmp_path, moment_s, keep=True, segments=segments)
    kept = {"cache": tmp_path / "cache", "identity": "1", "keep": True, "segments": segments}
    with burstio.Engine(tmp_path / "data", files, **kept) as engine:
        with burstio.Reader(engine, burstio.in_order(COUNT), 10, epochs=2) as reader:
            assert all(bytes(sample) == content(i) for batch in reader for i, sample in batch)
        counted = engine.statistics()
    assert counted["checksum_failures"] == 0
    assert counted["source_opens"] + counted["cache_adopted"] == COUNT


@in_both_layouts
def test_a_later_run_trusts_nothing_that_was_not_to_be_kept(
    tmp_path: Path, files: list[str], segments: bool
) -> None:
    kill_a_run(tmp_path, 0.1, segments=segments)
    cache = tmp_path / "cache"
    with burstio.Engine(
        tmp_path / "data", files, cache=cache, identity="1", keep=True, segments=segments
    ) as engine:
        assert engine.statistics()["cache_adopted"] == 0
        assert [path.name for path in cache.iterdir()] == ["lock"]


@pytest.mark.requires("root")
@in_both_layouts
def test_a_full_disk_stops_the_cache_and_nothing_else(
    tmp_path: Path, files: list[str], segments: bool
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], check=True)
    try:
        cache = {"cache": small / "cache", "cache_keep_free": 0.0, "segments": segments}
        with burstio.Engine(tmp_path / "data", files, **cache) as engine:
            with burstio.Reader(engine, burstio.shuffled(COUNT, 1), 8, epochs=4) as reader:
                for batch in reader:
                    assert all(bytes(sample) == content(i) for i, sample in batch)
            counted = engine.statistics()
        assert counted["cache_full"] == 1
        assert counted["source_errors"] == counted["checksum_failures"] == 0
    finally:
        subprocess.run(["umount", small], check=True)
