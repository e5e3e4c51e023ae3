"""What Chainer's own Python checks: ``python -m tests.pipelines.in_chainer CHECK DIRECTORY``.

Each function named check_* is a test of tests/pipelines/test_chainer.py.
"""

import copy
import gc
import multiprocessing
import os
import pickle
import shutil
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burstlab.pipelines import MODES
from tests.pipelines.small_set import COUNT, Numbered, make
from tests.polling import until

ATTRIBUTES = (
    "epoch",
    "current_position",
    "is_new_epoch",
    "epoch_detail",
    "previous_epoch_detail",
)


def ours(files: Numbered, mode: str, **options: Any) -> Any:
    from burstlab.pipelines.chainer import PipelineIterator

    local = files.root.parent / "local"
    if mode == "ssd" and not local.exists():
        shutil.copytree(files.root, local)
    given = {"n_processes": 2, "dataset_timeout": 60.0, "local": local, **options}
    return PipelineIterator(files, mode=mode, **given)


def theirs(files: Numbered, **options: Any) -> Any:
    from chainer.iterators import MultiprocessIterator

    return MultiprocessIterator(files, n_processes=2, shared_mem=10_000, **options)


def sampler(seed: int = 5) -> Any:
    import numpy as np
    from chainer.iterators import ShuffleOrderSampler

    return ShuffleOrderSampler(np.random.RandomState(seed))


def same_steps(one: Any, other: Any, steps: int) -> None:
    import numpy as np

    for step in range(steps):
        batches = [next(iterator, None) for iterator in (one, other)]
        if batches[1] is None:
            assert batches[0] is None, step
        else:
            assert len(batches[0]) == len(batches[1]), step
            for mine, wanted in zip(*batches, strict=True):
                assert type(mine) is type(wanted)
                assert mine[1] == wanted[1], step
                assert mine[0].dtype == wanted[0].dtype
                assert np.array_equal(mine[0], wanted[0])
                mine[0][...] = 0  # it can be written to
        for attribute in ATTRIBUTES:
            assert getattr(one, attribute) == getattr(other, attribute), (step, attribute)


def check_every_mode_steps_like_multiprocess_iterator(directory: Path) -> None:
    files = make(directory / "pfs")
    for mode in MODES:
        for options in ({}, {"repeat": False}, {"n_prefetch": 4}, {"batch_size": 60}):
            options = {"batch_size": 8, **options}
            with (
                ours(files, mode, order_sampler=sampler(), **options) as mine,
                theirs(files, order_sampler=sampler(), **options) as wanted,
            ):
                same_steps(mine, wanted, 20)


def check_unshuffled_and_default_shuffling(directory: Path) -> None:
    import numpy as np

    files = make(directory / "pfs")
    with (
        ours(files, "lazy", batch_size=8, shuffle=False) as mine,
        theirs(files, batch_size=8, shuffle=False) as wanted,
    ):
        same_steps(mine, wanted, 20)
    epochs = []
    for _ in range(2):
        np.random.seed(11)
        with ours(files, "direct", batch_size=COUNT) as mine:
            epochs.append([label for _, label in next(mine)])
    assert epochs[0] == epochs[1] != sorted(epochs[0]) == list(range(COUNT))


def check_another_sampler_is_asked_as_they_ask_it(directory: Path) -> None:
    files = make(directory / "pfs")
    asked: dict[str, list[Any]] = {"ours": [], "theirs": []}

    def rotating(whose: str) -> Callable[[Any, int], Any]:
        def rotate(order: Any, position: int) -> Any:
            asked[whose].append((order.tolist(), position))
            return order.take(range(7, 7 + COUNT), mode="wrap")

        return rotate

    with (
        ours(files, "lazy", batch_size=8, order_sampler=rotating("ours")) as mine,
        theirs(files, batch_size=8, order_sampler=rotating("theirs")) as wanted,
    ):
        same_steps(mine, wanted, 17)
    fewest = min(map(len, asked.values()))
    assert fewest >= 3
    assert asked["ours"][:fewest] == asked["theirs"][:fewest]


def check_snapshots_go_from_either_to_either(directory: Path) -> None:
    from chainer import serializers

    files = make(directory / "pfs")
    arguments = {"batch_size": 8}
    made: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(files, "lazy", order_sampler=sampler(), **arguments),
        "theirs": lambda: theirs(files, order_sampler=sampler(), **arguments),
    }
    for writer in made:
        for reader in made:
            with made[writer]() as one, made[reader]() as other, made["theirs"]() as wanted:
                for _ in range(3):
                    next(one)
                    next(wanted)
                serializers.save_npz(directory / "snapshot.npz", one)
                serializers.load_npz(directory / "snapshot.npz", other)
                for attribute in ATTRIBUTES:
                    assert getattr(other, attribute) == getattr(wanted, attribute)
                same_steps(other, wanted, 12)
    with ours(files, "direct", shuffle=False, **arguments) as one:
        next(one)
        with ours(files, "direct", shuffle=False, **arguments) as other:
            serializers.save_npz(directory / "snapshot.npz", one)
            serializers.load_npz(directory / "snapshot.npz", other)
            same_steps(other, one, 8)


def check_old_snapshots_can_be_read(directory: Path) -> None:
    files = make(directory / "pfs")
    with ours(files, "direct", batch_size=8, order_sampler=sampler()) as one:
        saved = {"current_position": 16, "epoch": 1, "is_new_epoch": False}

        def old(key: str, value: Any) -> Any:
            if key == "_order":
                value[:] = range(COUNT)
                return value
            return saved[key]

        one.serialize(old)
        assert (one.epoch_detail, one.previous_epoch_detail) == (1.32, 1.16)
        assert [label for _, label in next(one)] == list(range(16, 24))


def check_reset(directory: Path) -> None:
    files = make(directory / "pfs")
    for mode in MODES:
        with (
            ours(files, mode, batch_size=8, order_sampler=sampler()) as mine,
            theirs(files, batch_size=8, order_sampler=sampler()) as wanted,
        ):
            for _ in range(2):
                same_steps(mine, wanted, 3)
                mine.reset()
                wanted.reset()
            same_steps(mine, wanted, 12)


def check_finalize_and_what_comes_after(directory: Path) -> None:
    files = make(directory / "pfs")
    for mode in MODES:
        iterator = ours(files, mode, batch_size=8)
        next(iterator)
        iterator.finalize()
        iterator.finalize()
        for forbidden in (iterator.reset, iterator.next):
            try:
                forbidden()
            except NotImplementedError:
                continue
            raise AssertionError(f"{mode}: {forbidden} worked")
    iterator = ours(files, "paper3", batch_size=8)
    del iterator
    gc.collect()
    until(lambda: threading.active_count() == 1, "no thread is left")  # nobody joins a queue's
    assert not multiprocessing.active_children()


def check_pickles_and_copies(directory: Path) -> None:
    files = make(directory / "pfs")
    with (
        ours(files, "lazy", batch_size=8, order_sampler=sampler()) as one,
        theirs(files, batch_size=8, order_sampler=sampler()) as wanted,
    ):
        same_steps(one, wanted, 3)
        pickled, copied = pickle.dumps(one), copy.copy(one)
        same_steps(one, wanted, 2)  # it was not disturbed
        with pickle.loads(pickled) as other, copied:
            same_steps(copied, other, 2)
            same_steps(other, wanted, 0)
            for attribute in ATTRIBUTES:
                assert getattr(other, attribute) == getattr(one, attribute)
            same_steps(other, one, 10)


def check_exceptions_reach_the_caller(directory: Path) -> None:
    from burstlab.pipelines.chainer import PipelineIterator

    files = make(directory / "pfs")
    (files.root / files.files[10]).write_bytes(b"")
    for mode in MODES:
        with ours(files, mode, batch_size=8, shuffle=False) as iterator:
            next(iterator)
            try:
                next(iterator)
            except ValueError as error:
                assert "0/10 is empty" in str(error)
            else:
                raise AssertionError(mode)
            assert iterator.current_position == 8
            assert next(iterator)[0][1] == 16
    with PipelineIterator([1, 2, "three"], 3, shuffle=False, mode="direct") as iterator:
        assert next(iterator) == [1, 2, "three"]


def check_empty_data_set_and_wrong_arguments(directory: Path) -> None:
    files = make(directory / "pfs")
    for told, given, options in (
        ("must be positive", files.part([]), {}),
        ("exclude each other", files, {"shuffle": True, "order_sampler": sampler()}),
    ):
        try:
            ours(given, "direct", batch_size=8, **options)
        except ValueError as error:
            assert told in str(error)
        else:
            raise AssertionError(told)


def check_a_stalled_data_set_is_warned_of(directory: Path) -> None:
    from burstlab.pipelines.chainer import TimeoutWarning

    files = make(directory / "pfs")
    stalled = files.root / files.files[3]
    content = stalled.read_bytes()
    stalled.unlink()
    os.mkfifo(stalled)
    with ours(files, "direct", batch_size=8, shuffle=False, dataset_timeout=0.1) as iterator:
        with warnings.catch_warnings():
            warnings.simplefilter("error", TimeoutWarning)
            try:
                next(iterator)
            except TimeoutWarning as warning:
                assert str(stalled) in str(warning)
            else:
                raise AssertionError("no warning")
        writer = threading.Thread(target=stalled.write_bytes, args=(content,))
        writer.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TimeoutWarning)
            assert next(iterator)[3][1] == 3
        writer.join(60)


def check_the_start_method_is_the_users(directory: Path) -> None:
    multiprocessing.set_start_method("forkserver")
    files = make(directory / "pfs")
    for mode in MODES:
        with ours(files, mode, batch_size=8, shuffle=False) as iterator:
            assert [label for _, label in next(iterator)] == list(range(8))


def check_a_trainer_trains(directory: Path) -> None:
    import chainer
    import numpy as np
    from chainer import links, optimizers, training

    class Few(Numbered):
        def decode(self, index: int, content: Any) -> Any:
            return np.full(4, index, np.float32), np.int32(index % 2)

    files = make(directory / "pfs")
    few = Few(files.root, files.files)
    model = links.Classifier(links.Linear(4, 2))
    optimizer = optimizers.SGD().setup(model)
    iterator = ours(few, "lazy", batch_size=8)
    trainer = training.Trainer(
        training.StandardUpdater(iterator, optimizer), (2, "epoch"), directory / "result"
    )
    trainer.extend(training.extensions.snapshot(), trigger=(1, "epoch"))
    trainer.run()
    assert iterator.epoch == 2
    snapshot = directory / "result" / "snapshot_iter_13"
    resumed = ours(few, "lazy", batch_size=8)
    again = training.Trainer(
        training.StandardUpdater(resumed, optimizer), (3, "epoch"), directory / "result"
    )
    chainer.serializers.load_npz(snapshot, again)
    assert resumed.epoch == 2
    again.run()


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
    until(lambda: threading.active_count() == 1, "no thread is left")
    assert not multiprocessing.active_children()
