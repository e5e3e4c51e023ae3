"""Prefetching by burstio (docs/prefetching.md): the decode workers get bytes, not names."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

from burstlab.pipelines.decoding import Arrivals, check, name, submit
from burstlab.pipelines.files import Files
from burstlab.pipelines.interface import (
    Indices,
    Minibatch,
    Options,
    Pipeline,
    PipelineError,
)
from burstlab.pipelines.workers import Workers

PATIENCE_S = 5.0  # with an agent that does not even greet


class Lazy(Pipeline):
    """A thread takes samples from the engine's stream and hands them to the workers."""

    def __init__(self, files: Files, options: Options) -> None:
        self._files, self._options = files, options
        self._workers = Workers(files.decode, options.workers, options.transport or "threads")
        self._cache: Path | None = None
        try:
            self._engine = self._begin(files, options)
        except BaseException:
            self._workers.close()
            self._forget_cache()
            raise
        self._numbers: Sequence[int] = files.numbers if options.agent else range(len(files))
        self._arrivals, self._generation = Arrivals(options.ahead), 0
        self._unread: list[Indices] = []  # planned, and not yet told to the engine
        self._thread = Thread(target=self._feed, name="lazy", daemon=True)
        self._thread.start()

    def plan(self, minibatches: Sequence[Indices]) -> None:
        check(minibatches, len(self._files))
        with self._arrivals.changed:
            self._arrivals.planned.extend(minibatches)
            self._unread.extend(minibatches)
            self._arrivals.changed.notify_all()

    def take(self) -> Minibatch:
        return self._arrivals.get(self._files, self._options.time_limit_s)

    def reset(self) -> None:
        with self._arrivals.changed:
            self._unread.clear()
            self._arrivals.reset()

    def close(self) -> None:
        if self._arrivals.closed:
            return
        self._arrivals.close()
        self._engine.close()  # wakes who waits for it
        self._thread.join(PATIENCE_S)
        self._workers.close()
        self._forget_cache()

    def statistics(self) -> dict[str, int]:
        counters: dict[str, int] = self._engine.statistics()
        return counters

    def _feed(self) -> None:
        try:
            with self._engine.stream() as stream:
                self._feed_from(stream)
        except Exception as error:  # of a closed engine, where this has just been closed
            if not self._arrivals.closed:
                self._arrivals.fail(error)

    def _feed_from(self, stream: Any) -> None:
        """Tell the stream what is planned as soon as it is, and take as long as there is room."""
        arrivals = self._arrivals
        while True:
            with arrivals.changed:
                arrivals.changed.wait_for(self._has_work)
                if arrivals.closed:
                    return
                stale = self._generation != arrivals.generation
                self._generation = generation = arrivals.generation
                unread, self._unread = self._unread, []
                following = arrivals.planned[0] if self._may_take() else None
            if stale:
                stream.reset()
            stream.plan([self._numbers[index] for part in unread for index in part])
            if following is not None:
                self._take(stream, following, generation)

    def _take(self, stream: Any, following: Indices, generation: int) -> None:
        try:
            taken = stream.take(len(following))
            if [number for number, _ in taken] != [self._numbers[index] for index in following]:
                # A source that itself fails with ETIMEDOUT looks like a stall, and was passed by.
                lost = name(self._files, following[0])
                raise PipelineError(f"{lost}: its minibatch is lost: the source gave ETIMEDOUT")
            decoding = submit(self._workers, following, [memoryview(it) for _, it in taken])
        except TimeoutError as error:  # the same is taken again
            self._arrivals.waits_for(generation, f"{error.filename}: {error.strerror or error}")
        except Exception as error:
            self._arrivals.put(generation, error)
        else:
            self._arrivals.put(generation, decoding)

    def _has_work(self) -> bool:
        arrivals = self._arrivals
        stale = self._generation != arrivals.generation
        return arrivals.closed or stale or bool(self._unread) or self._may_take()

    def _may_take(self) -> bool:
        return self._arrivals.room and bool(self._arrivals.planned)

    def _begin(self, files: Files, options: Options) -> Any:
        import burstio

        if options.agent is not None:
            if options.engine is not None:
                raise PipelineError("engine=: the agent has its own options: leave out one of them")
            return burstio.connect(options.agent)
        if options.local is not None:  # one engine has one cache; who shares one has an agent
            options.local.mkdir(parents=True, exist_ok=True)
            self._cache = Path(tempfile.mkdtemp(prefix="lazy-", dir=options.local))
        chosen = {"cache": self._cache, **(options.engine or {})}
        if options.time_limit_s is not None:
            # It has told which file is late when who takes has no more patience.
            chosen.setdefault("time_limit_s", options.time_limit_s / 2)
        return burstio.Engine(files.root, files.files, **chosen)

    def _forget_cache(self) -> None:
        if self._cache is not None:
            shutil.rmtree(self._cache, ignore_errors=True)
