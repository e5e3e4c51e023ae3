"""What a reader returns: the same from an engine of this process and from a node's agent."""

import errno
import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.burstio import prefetch_set
from tests.burstio.prefetch_set import COUNT, content
from tests.polling import until

burstio = pytest.importorskip("burstio")
pytestmark = pytest.mark.requires("burstio")

Opened = Callable[..., "burstio.Engine | burstio.Client"]


@pytest.fixture(params=["engine", "agent"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens the data set with options, as an engine or as a client of an agent."""
    files = prefetch_set.make(tmp_path / "data")
    with ExitStack() as stack:

        def open_it(**options: object) -> "burstio.Engine | burstio.Client":
            if request.param == "engine":
                return stack.enter_context(burstio.Engine(tmp_path / "data", files, **options))
            flags: list[object] = []
            for name, value in options.items():
                values = value if isinstance(value, tuple) else (value,)
                flags += [f"--{name.replace('_', '-')}", *values]
            socket, _ = stack.enter_context(prefetch_set.agent(tmp_path, files, *flags))
            return burstio.connect(socket)

        yield open_it


def test_every_epoch_is_numpys_permutation(opened: Opened) -> None:
    numpy = pytest.importorskip("numpy")
    random = numpy.random.RandomState(11)
    expected = [random.permutation(COUNT) for _ in range(3)]
    order = burstio.shuffled(COUNT, 11)
    with burstio.Reader(opened(), order, 32, epochs=3) as reader:
        found = [(reader.epoch, reader.position, batch) for batch in reader]
    assert [len(batch) for *_, batch in found] == [32, 32, 32, 32, 32, 32, 8] * 3
    assert [i for *_, batch in found for i, _ in batch] == [i for e in expected for i in e]
    assert all(bytes(sample) == content(i) for *_, batch in found for i, sample in batch)


def test_minibatches_across_epochs_say_which_epoch_they_end_in(opened: Opened) -> None:
    order = burstio.shuffled(COUNT, 1)
    told = []
    with burstio.Reader(opened(), order, 150, epochs=3, across_epochs=True) as reader:
        for batch in reader:
            told.append((len(batch), reader.epoch, reader.position, reader.is_new_epoch))
    assert told == [
        (150, 0, 150, False),
        (150, 1, 100, True),
        (150, 2, 50, True),
        (150, 3, 0, True),
    ]


def test_a_minibatch_may_be_longer_than_epochs(opened: Opened) -> None:
    order = burstio.shuffled(COUNT, 1)
    with burstio.Reader(opened(), order, 450, epochs=5, across_epochs=True) as reader:
        assert [(len(batch), reader.epoch) for batch in reader] == [(450, 2), (450, 4), (100, 5)]


def test_an_order_is_any_buffer_or_sequence(opened: Opened) -> None:
    numpy = pytest.importorskip("numpy")
    orders = [[5, 3, 5], array("I", [1, 2]), array("q", [7]), numpy.array([4, 4])]
    with burstio.Reader(opened(), burstio.given(orders), 9, epochs=4) as reader:
        assert [[i for i, _ in batch] for batch in reader] == [[5, 3, 5], [1, 2], [7], [4, 4]]


def test_an_order_that_is_given_ends_with_its_last_epoch(opened: Opened) -> None:
    order = burstio.given([[5, 3, 5], [1, 2], [7]])
    with burstio.Reader(opened(), order, 2) as reader:
        assert [[i for i, _ in batch] for batch in reader] == [[5, 3], [5], [1, 2], [7]]


def test_a_lost_minibatch_is_counted_and_the_next_epoch_begins_where_it_does(
    opened: Opened, tmp_path: Path
) -> None:
    (tmp_path / "data/3/38").unlink()
    told: list[tuple[int, int, bool]] = []
    lost: list[tuple[int, int, bool]] = []
    with burstio.Reader(opened(), burstio.in_order(COUNT), 32, epochs=2) as reader:
        while True:
            try:
                next(reader)
            except FileNotFoundError:
                lost.append((reader.epoch, reader.position, reader.is_new_epoch))
            except StopIteration:
                break
            told.append((reader.epoch, reader.position, reader.is_new_epoch))
    epochs = [[(e, 32 * i, False) for i in range(1, 7)] + [(e + 1, 0, True)] for e in (0, 1)]
    assert told == epochs[0] + epochs[1]
    assert lost == [(0, 64, False), (1, 64, False)]


def test_a_minibatch_that_comes_late_is_waited_for_again(opened: Opened, tmp_path: Path) -> None:
    late = tmp_path / "data/2/2"
    late.unlink()
    os.mkfifo(late)
    feeds = opened(time_limit_s=0.3)
    with burstio.Reader(feeds, burstio.given([[2, 3]]), 1) as reader:
        with pytest.raises(TimeoutError):
            next(reader)
        assert (reader.epoch, reader.position) == (0, 0)
        until(lambda: feeds.statistics()["from_source"] == 1, "the other file has been read ahead")
        os.close(os.open(late, os.O_WRONLY))
        until(lambda: feeds.statistics()["in_flight"] == 0, "it was found to be no file")
        with pytest.raises(OSError, match="not a regular file"):
            next(reader)
        assert (reader.epoch, reader.position) == (0, 1)
        assert [i for i, _ in next(reader)] == [3]


def test_a_stream_starts_anew_after_reset(opened: Opened) -> None:
    with opened().stream() as stream:
        stream.plan(range(100))
        stream.take(10)
        stream.reset()
        assert stream.remaining == 0
        stream.plan([3, 1])
        assert [i for i, _ in stream.take(5)] == [3, 1]
        assert stream.take(5) == []


def test_an_index_that_is_no_files_is_refused(opened: Opened) -> None:
    stream = opened().stream()
    with pytest.raises(IndexError, match="no file 200"):
        stream.plan([0, COUNT])
    with pytest.raises(IndexError, match="no file -1"):
        stream.plan(array("q", [-1]))


def test_a_file_that_vanished_is_named(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "data/2/2").unlink()
    with opened().stream() as stream:
        stream.plan([1, 2, 3])
        assert len(stream.take(1)) == 1
        with pytest.raises(FileNotFoundError) as raised:
            stream.take(1)
        assert raised.value.filename == str(tmp_path / "data/2/2")
        assert [i for i, _ in stream.take(1)] == [3]


def test_a_source_that_stalls_is_named_in_time(opened: Opened, tmp_path: Path) -> None:
    stalled = tmp_path / "data/2/2"
    stalled.unlink()
    os.mkfifo(stalled)  # open(2) does not return until somebody writes
    feeds = opened(time_limit_s=0.3)
    with feeds.stream() as stream:
        stream.plan([1, 2, 3])
        with pytest.raises(TimeoutError) as raised:
            stream.take(3)
        assert (raised.value.errno, raised.value.filename) == (errno.ETIMEDOUT, str(stalled))
    os.close(os.open(stalled, os.O_WRONLY))


def test_samples_outlive_their_minibatch_and_their_stream(opened: Opened) -> None:
    feeds = opened(memory_bytes=1 << 20)
    with feeds.stream() as stream:
        stream.plan(list(range(COUNT)) * 2)
        kept = [item for _ in range(20) for item in stream.take(10)]
    assert all(bytes(sample) == content(i) for i, sample in kept)


def test_nobody_can_write_into_a_sample(opened: Opened) -> None:
    with opened().stream() as stream:
        stream.plan([0])
        [(_, sample)] = stream.take(1)
    view = memoryview(sample)
    with pytest.raises(TypeError):
        view[0] = 1


def test_what_came_from_where_is_counted(opened: Opened, tmp_path: Path) -> None:
    feeds = opened(cache=tmp_path / "cache")
    for epoch in range(2):
        with burstio.Reader(feeds, burstio.shuffled(COUNT, epoch), 16, epochs=1) as reader:
            assert sum(len(batch) for batch in reader) == COUNT
        feeds.drain()
    counted = feeds.statistics()
    size = sum(len(content(i)) for i in range(COUNT))
    assert counted["source_opens"] == counted["from_source"] == counted["cache_samples"] == COUNT
    assert counted["source_bytes"] == size
    assert counted["from_cache"] + counted["from_memory"] == COUNT  # what was still in use
    assert 0 < counted["cache_bytes_read"] <= size
    assert sum(feeds.waits()) == counted["minibatches"] == 2 * -(-COUNT // 16)


def test_fixed_shards_are_chainermns_and_global_ones_share_an_epoch() -> None:
    whole = burstio.in_order(10)(0)
    parts = [list(burstio.in_order(10, burstio.Shard(r, 3))(0)) for r in range(3)]
    assert list(whole) == list(range(10))
    assert parts == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    every = [burstio.shuffled(10, 5, burstio.Shard(r, 3, reshuffled=True))(4) for r in range(3)]
    assert sorted(i for part in every for i in part) == list(range(10))
