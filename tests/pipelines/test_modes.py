"""The four modes: the same minibatches, errors that name their file, nothing left behind."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import burstio
import numpy as np
import pytest

from burstlab.pipelines import (
    MODES,
    Minibatches,
    Mode,
    Options,
    PipelineError,
    open_pipeline,
)
from tests.pipelines.small_set import COUNT, Numbered, is_right, make, opened
from tests.polling import until

pytestmark = pytest.mark.requires("burstio")

TRANSPORTS = ("processes", "threads")


@pytest.fixture
def files(tmp_path: Path) -> Numbered:
    return make(tmp_path / "pfs")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
def test_minibatches_come_in_the_order_of_the_seed(
    mode: Mode, transport: str, files: Numbered
) -> None:
    drawn = np.random.RandomState(3)
    wanted = [i for _ in range(3) for i in drawn.permutation(COUNT)]
    order = burstio.shuffled(COUNT, seed=3)
    with Minibatches(
        opened(mode, files, transport=transport, copiers=3), order, 8, epochs=3, across_epochs=True
    ) as batches:
        got, states = [], []
        for batch in batches:
            assert is_right(batches.indices, batch)
            got += batches.indices
            states.append((batches.epoch, batches.position, batches.is_new_epoch))
    assert got == wanted
    assert states[5:7] == [(0, 48, False), (1, 6, True)]
    assert states[-1] == (3, 0, True)


def test_short_last_minibatches_and_the_end(files: Numbered) -> None:
    with Minibatches(opened("direct", files), burstio.in_order(COUNT), 16, epochs=2) as batches:
        sizes = [len(batch) for batch in batches]
        assert next(batches, None) is None
    assert sizes == [16, 16, 16, 2] * 2


def test_an_order_that_is_given_ends_with_its_last_epoch(files: Numbered) -> None:
    order = burstio.given([[5, 3, 5], [1, 2], [7]])
    with Minibatches(opened("direct", files), order, 4, across_epochs=True) as batches:
        assert [list(batches.indices) for _ in batches] == [[5, 3, 5, 1], [2, 7]]


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_forgets_what_was_planned(mode: Mode, files: Numbered) -> None:
    with opened(mode, files, ahead=3) as pipeline:
        pipeline.plan([[i, i + 1] for i in range(0, 40, 2)])
        assert list(pipeline.take().indices) == [0, 1]
        pipeline.reset()
        with pytest.raises(IndexError, match="no minibatch is planned"):
            pipeline.take()
        pipeline.plan([[7, 3], [5]])
        for indices in ([7, 3], [5]):
            taken = pipeline.take()
            assert list(taken.indices) == indices
            assert is_right(indices, taken.examples)


@pytest.mark.parametrize("mode", MODES)
def test_a_lost_file_is_named_and_the_next_minibatch_comes(mode: Mode, files: Numbered) -> None:
    with opened(mode, files) as pipeline:
        where = files.root.parent / "local" if mode == "ssd" else files.root
        (where / files.files[3]).unlink()
        pipeline.plan([[2, 3], [4]])
        with pytest.raises(FileNotFoundError) as caught:
            pipeline.take()
        assert files.files[3] in str(caught.value)
        assert is_right([4], pipeline.take().examples)


@pytest.mark.parametrize("mode", MODES)
def test_what_the_data_set_raises_is_raised_to_the_caller(mode: Mode, files: Numbered) -> None:
    (files.root / files.files[3]).write_bytes(b"")
    with opened(mode, files) as pipeline:
        pipeline.plan([[2, 3], [4]])
        with pytest.raises(ValueError, match=f"{files.files[3]} is empty"):
            pipeline.take()
        assert is_right([4], pipeline.take().examples)


@pytest.mark.parametrize("mode", ["direct", "paper3"])
def test_a_killed_worker_is_told(mode: Mode, files: Numbered) -> None:
    before = children()
    with opened(mode, files, workers=1, copiers=1) as pipeline:
        pipeline.plan([[0]])
        pipeline.take()
        for pid in children() - before:
            os.kill(pid, signal.SIGKILL)
        pipeline.plan([[1], [2]])
        with pytest.raises(PipelineError, match="ended with"):
            pipeline.take()


def children() -> set[int]:
    """Processes of this one."""
    return {
        int(pid)
        for path in Path("/proc/self/task").glob("*/children")
        for pid in path.read_text().split()
    }


def test_paper3_finds_what_is_copied_and_keeps_no_half_files(files: Numbered) -> None:
    local = files.root.parent / "local"
    with opened("paper3", files) as pipeline:
        pipeline.plan([[0, 1, 2]])
        pipeline.take()
    assert sorted(p.name for p in local.rglob("*") if p.is_file()) == ["0", "1", "2"]
    assert not list(local.glob(".*"))
    (files.root / files.files[1]).unlink()
    with opened("paper3", files) as pipeline:
        pipeline.plan([[1]])
        assert is_right([1], pipeline.take().examples)


def test_paper3_in_completion_order_gives_everything_once(files: Numbered) -> None:
    with opened("paper3", files, copiers=4, in_completion_order=True) as pipeline:
        pipeline.plan([range(i, i + 5) for i in range(0, COUNT, 5)])
        taken = [pipeline.take() for _ in range(COUNT // 5)]
    assert sorted(i for minibatch in taken for i in minibatch.indices) == list(range(COUNT))
    assert all(is_right(list(m.indices), m.examples) for m in taken)


def test_lazy_with_an_agent_reads_a_part_of_its_data_set(tmp_path: Path, files: Numbered) -> None:
    engine = burstio.Engine(files.root, files.files)
    with engine.serve(tmp_path / "agent" / "socket"):
        part = files.part(range(10, 30))
        options = Options(agent=tmp_path / "agent" / "socket", time_limit_s=60.0)
        with open_pipeline("lazy", part, options) as pipeline:
            pipeline.plan([[0, 19]])
            arrays = [array for array, _ in pipeline.take().examples]
    assert [int(array[0]) for array in arrays] == [10, 29]


def test_what_does_not_go_together_is_told() -> None:
    for mode, options, told in (
        ("fast", Options(), "there are direct"),
        ("ssd", Options(), "local= is wanted"),
        ("lazy", Options(agent=Path("x"), engine={"tee": False}), "the agent has its own options"),
    ):
        with pytest.raises(PipelineError, match=told):
            open_pipeline(mode, Numbered("/", ["a"]), options)  # type: ignore[arg-type]
    with pytest.raises(PipelineError, match="list is no"):
        open_pipeline("lazy", [1])
    with pytest.raises(PipelineError, match="workers=0"):
        Options(workers=0)


def held() -> tuple[int, int, int]:
    """Descriptors, threads and pieces of shared memory of this process."""
    mapped = Path("/proc/self/maps").read_text().count("/dev/shm/")
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), mapped


@pytest.mark.slow
def test_a_thousand_pipelines_leave_nothing(files: Numbered) -> None:
    for number in range(1000):
        if number == 8:  # what Python makes once, such as the heap of shared memory, is there
            before = held()
        with opened(MODES[number % 4], files, workers=1, copiers=1) as pipeline:
            pipeline.plan([[1], [2]])
            if number % 3:
                pipeline.take()
    until(
        lambda: all(now <= then for now, then in zip(held(), before, strict=True)),
        f"descriptors, threads and shared memory as few as before, {before}, and not {held()}",
        limit_s=10,  # a process or a thread that was told to end may take a moment
    )
    assert not children()


def test_nothing_of_burstlab_s_configuration_is_imported() -> None:
    """Chainer's Python has none of its packages."""
    program = (
        "import sys, burstlab.pipelines, burstlab.pipelines.direct, burstlab.pipelines.paper3; "
        "import burstlab.pipelines.lazy; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = set(done.stdout.split())
    assert not found & {"pydantic", "yaml", "numpy", "PIL", "burstio", "burstlab.config"}
