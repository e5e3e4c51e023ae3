"""The three asynchronous stages of Serizawa and Tatebe's section 3, written anew from their text.

Stage 1, one process: lists of the indices of each minibatch go into the first queue. Stage 2, P
processes: take such a list, copy its files one after the other from the parallel file system to a
directory on node-local storage, where a file of that name is not there yet, and put the list into
the second queue. Stage 3, G processes: read the files of a list from node-local storage, and build
the minibatch. Both queues are bounded.

What is known to be wrong with the authors' program and is not so here:

* its index process and its iterator each run a state machine of their own, so that the order in the
  iterator's state is not the one that is served: here the iterator plans, and stage 1 passes it on;
* with two copy processes minibatches come in the order in which they are copied, also across the
  end of an epoch: here they are put in order again (``in_completion_order`` gives theirs);
* ``reset()`` does not reach the index process, nothing can be serialized or resumed, and a process
  can have one iterator only (module globals): here neither is so;
* a file that another process is just copying looks as if it were there: here it is copied under
  another name and renamed;
* where the node-local disk is full, the copy process dies and the iterator waits for ever: here the
  minibatch's ``take`` raises, as it does when a process of any stage is killed, or when a file does
  not come within the time limit;
* the baseline it was compared with buffered one minibatch, it a thousand: here ``ahead`` is equal.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Empty
from threading import Thread
from typing import Any

from burstlab.pipelines.children import PATIENCE_S, end, portable, settle
from burstlab.pipelines.decoding import Arrivals, check, name, submit
from burstlab.pipelines.files import Files
from burstlab.pipelines.interface import (
    Indices,
    Minibatch,
    Options,
    Pipeline,
    PipelineError,
    Stalled,
)
from burstlab.pipelines.workers import Workers

IDLE = -1  # in place of the sample that a copy process is at
GLANCE_S = 0.05  # how often the second queue's reader looks whether everybody lives


class Paper3(Pipeline):
    """Copies to ``options.local``, where a later run finds what an earlier one copied."""

    def __init__(self, files: Files, options: Options, local: Path) -> None:
        self._files, self._options, self._local = files, options, local
        self._serial = 0
        read = _Reading(files, local)
        self._workers = Workers(read, options.workers, options.transport or "processes")
        context: Any = get_context()
        self._plans = context.Queue()
        self._lists = context.Queue(options.queue_length)
        self._copied = context.Queue(options.queue_length)
        self._generation = context.RawValue("Q", 0)
        self._copying = context.RawArray("q", [IDLE] * options.copiers)
        copying = (files, local, self._lists, self._copied, self._generation, self._copying)
        indexing = (self._plans, self._lists, self._generation)
        self._processes: list[BaseProcess] = [
            context.Process(target=_index, args=indexing, name="index", daemon=True)
        ] + [
            context.Process(target=_copy, args=(*copying, place), name="copy", daemon=True)
            for place in range(options.copiers)
        ]
        for process in self._processes:
            process.start()
        self._arrivals = Arrivals(options.ahead)
        self._thread = Thread(target=self._feed, name="paper3", daemon=True)
        self._thread.start()

    def plan(self, minibatches: Sequence[Indices]) -> None:
        check(minibatches, len(self._files))
        with self._arrivals.changed:
            self._arrivals.planned.extend(minibatches)
        numbered = list(enumerate(minibatches, self._serial))
        self._serial += len(numbered)
        self._plans.put((self._generation.value, numbered))

    def take(self) -> Minibatch:
        try:
            return self._arrivals.get(self._files, self._options.time_limit_s)
        except Stalled as stalled:
            self._check_alive()
            told = [
                f"{process.name} process {process.pid} is at {name(self._files, index)}"
                for process, index in zip(self._processes[1:], self._copying, strict=True)
                if index != IDLE
            ]
            raise Stalled("; ".join([str(stalled), *told])) from stalled

    def reset(self) -> None:
        self._serial = 0
        self._arrivals.reset()
        self._generation.value = self._arrivals.generation

    def close(self) -> None:
        if self._arrivals.closed:
            return
        self._arrivals.close()
        end(self._processes)
        for process in self._processes:
            shutil.rmtree(_half_files(self._local, process.pid), ignore_errors=True)
        self._thread.join(PATIENCE_S)  # who was killed may have left half a message
        self._workers.close()
        for queue in (self._plans, self._lists, self._copied):
            queue.cancel_join_thread()
            queue.close()
        for process in self._processes:
            if process.exitcode is not None:
                process.close()

    def _feed(self) -> None:
        try:
            self._feed_in_order()
        except Exception as error:  # such as workers that are gone, where this was just closed
            if not self._arrivals.closed:
                self._arrivals.fail(error)

    def _feed_in_order(self) -> None:
        """Hand what is copied to the workers, in order, as long as there is room."""
        arrivals = self._arrivals
        waiting: dict[int, Any] = {}
        following, generation = 0, 0
        for copied_in, serial, copied in self._from_second_queue():
            with arrivals.changed:
                if generation != arrivals.generation:
                    waiting, following, generation = {}, 0, arrivals.generation
            if copied_in != generation:
                continue
            waiting[serial] = copied
            ready = list(waiting) if self._options.in_completion_order else []
            while following in waiting and not self._options.in_completion_order:
                ready.append(following)
                following += 1
            for serial in ready:
                self._hand_over(waiting.pop(serial), generation)

    def _hand_over(self, copied: Indices | Exception, generation: int) -> None:
        arrivals = self._arrivals

        def may_go_on() -> bool:
            return arrivals.room or arrivals.closed or generation != arrivals.generation

        with arrivals.changed:
            arrivals.changed.wait_for(may_go_on)
            if arrivals.closed or generation != arrivals.generation:
                return
        if isinstance(copied, Exception):
            arrivals.put(generation, copied)
        else:
            arrivals.put(generation, submit(self._workers, copied))

    def _from_second_queue(self) -> Iterator[tuple[int, int, Indices | Exception]]:
        """Until the end. Raises PipelineError when a process of stage 1 or 2 has died."""
        while not self._arrivals.closed:
            self._check_alive()
            with suppress(Empty):
                yield self._copied.get(timeout=GLANCE_S)

    def _check_alive(self) -> None:
        for process in self._processes:
            if not process.is_alive():
                told = f"{process.name} process {process.pid} ended with {process.exitcode}"
                raise PipelineError(f"paper3: {told}: look for what killed it (memory?)")


class _Reading:
    """What the workers of stage 3 do."""

    def __init__(self, files: Files, local: Path) -> None:
        self._files, self._local = files, local

    def __call__(self, index: int, content: Any) -> Any:
        assert content is None
        return self._files.read(self._local, index)


def _index(plans: Any, lists: Any, current: Any) -> None:
    """Stage 1: from plans, however long, to one list of indices at a time."""
    settle()
    while True:
        generation, numbered = plans.get()
        for serial, indices in numbered:
            if generation == current.value:
                lists.put((generation, serial, indices))


def _copy(
    files: Files, local: Path, lists: Any, copied: Any, current: Any, copying: Any, place: int
) -> None:
    """Stage 2: the files of a list, one after the other; ``copying[place]`` tells which."""
    settle()
    half_files = _half_files(local, os.getpid())
    half_files.mkdir(parents=True)
    while True:
        generation, serial, indices = lists.get()
        if generation != current.value:
            continue
        try:
            for index in indices:
                copying[place] = int(index)
                _copy_one(files.root / files.files[index], local / files.files[index], half_files)
        except Exception as error:
            copied.put((generation, serial, portable(error)))
        else:
            copied.put((generation, serial, indices))
        copying[place] = IDLE


def _copy_one(source: Path, target: Path, half_files: Path) -> None:
    """Raises OSError naming the file."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = half_files / target.name
    shutil.copyfile(source, partial)
    partial.replace(target)


def _half_files(local: Path, pid: int | None) -> Path:
    """Where a copy process has the file that it is at."""
    return local / f".copying.{pid}"
