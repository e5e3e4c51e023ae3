"""A file that does not come: it is named in time, waited for again, and holds nobody's end."""

import errno
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import burstio
import pytest

from burstlab.pipelines import Mode, Pipeline, PipelineError, Stalled
from tests.pipelines.small_set import Numbered, is_right, make, opened
from tests.polling import until

pytestmark = pytest.mark.requires("burstio")


@pytest.fixture
def files(tmp_path: Path) -> Numbered:
    return make(tmp_path / "pfs")


def stall(path: Path) -> bytes:
    """From now on opening this file waits; what was in it."""
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    return content


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "lazy"])
def test_a_stalled_source_is_told_in_time_and_waited_for_again(mode: Mode, files: Numbered) -> None:
    stalled = files.root / files.files[3]
    content = stall(stalled)
    with opened(mode, files, time_limit_s=2.0) as pipeline:
        pipeline.plan([[2, 3], [4]])
        with pytest.raises(Stalled, match=f"^{stalled}: "):
            pipeline.take()
        writer = threading.Thread(target=_write, args=(stalled, content))
        writer.start()
        if mode == "direct":
            assert is_right([2, 3], patiently(pipeline))
        else:  # it was waited for, and burstio wants a file
            with pytest.raises(OSError, match="is not a regular file"):
                patiently(pipeline)
        writer.join(60)
        assert is_right([4], patiently(pipeline))


@pytest.mark.parametrize(
    ("agents_s", "own_s", "told"),
    [
        (0.5, 2.0, "3/3: the source has not given it within 0.5 s"),
        (600.0, 0.5, "2/2: this, or another of the 2 of its minibatch, did not come in time"),
    ],
    ids=["agent", "own"],
)
def test_who_has_an_agent_is_told_which_file_where_it_knows(
    tmp_path: Path, files: Numbered, agents_s: float, own_s: float, told: str
) -> None:
    stalled = files.root / files.files[3]
    stall(stalled)
    socket = tmp_path / "agent" / "socket"
    with burstio.Engine(files.root, files.files, time_limit_s=agents_s).serve(socket):
        with opened("lazy", files, local=None, agent=socket, time_limit_s=own_s) as pipeline:
            pipeline.plan([[2, 3]])
            with pytest.raises(Stalled, match=f"^{files.root}/{told}$"):
                pipeline.take()
        os.close(os.open(stalled, os.O_RDWR))


def _write(stalled: Path, content: bytes) -> None:
    with suppress(BrokenPipeError):  # who refuses a pipe does not read it
        stalled.write_bytes(content)


def patiently(pipeline: Pipeline) -> list[Any]:
    """The next minibatch, however busy the machine is."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return pipeline.take().examples
        except Stalled:
            assert time.monotonic() < deadline


class Lossy:
    """A stream of a source whose first read fails with ETIMEDOUT: what was taken is gone."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._failed = stream, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> "Lossy":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def take(self, count: int) -> Any:
        taken = self._stream.take(count)
        if self._failed:
            return taken
        self._failed = True
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), "of the source")


def test_a_time_out_of_the_source_itself_gives_no_sample_another_s_name(
    files: Numbered, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Engine:
        def __init__(self, *given: Any, **options: Any) -> None:
            self._engine = engines(*given, **options)
            self.close = self._engine.close

        def stream(self) -> Lossy:
            return Lossy(self._engine.stream())

    engines = burstio.Engine
    monkeypatch.setattr(burstio, "Engine", Engine)
    with opened("lazy", files) as pipeline:
        pipeline.plan([[1, 2], [3, 4], [5, 6]])
        with pytest.raises(PipelineError, match=f"{files.root}/1/1: its minibatch is lost"):
            pipeline.take()


@pytest.mark.parametrize("mode", ["direct", "lazy"])
@pytest.mark.slow
def test_a_stalled_source_does_not_hold_the_end(mode: Mode, files: Numbered) -> None:
    stalled = files.root / files.files[3]
    stall(stalled)
    before = threading.active_count()
    pipeline = opened(mode, files)
    pipeline.plan([[1], [2, 3], [4]])
    pipeline.take()  # now it is busy with the next one
    began = time.monotonic()
    pipeline.close()
    pipeline.close()
    assert time.monotonic() - began < 30, "no later than half the time limit"
    until(lambda: threading.active_count() == before, "no thread is left")
    os.close(os.open(stalled, os.O_RDWR))


def test_a_stalled_source_of_an_agent_does_not_hold_the_end(
    tmp_path: Path, files: Numbered
) -> None:
    stalled = files.root / files.files[3]
    stall(stalled)
    socket, before = tmp_path / "agent" / "socket", threading.active_count()
    with burstio.Engine(files.root, files.files, time_limit_s=600.0).serve(socket):
        pipeline = opened("lazy", files, local=None, agent=socket, time_limit_s=600.0)
        pipeline.plan([[1], [3]])
        pipeline.take()
        pipeline.close()
        assert threading.active_count() == before
        os.close(os.open(stalled, os.O_RDWR))
