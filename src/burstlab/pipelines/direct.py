"""The baselines: decode workers that read the files themselves, from wherever they lie.

This is what Chainer's MultiprocessIterator does, on the parallel file system (``direct``) or on a
copy that was staged to node-local storage before (``ssd``, the paper's ideal; its figure 3).
"""

import operator
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from burstlab.pipelines.decoding import Decoding, submit
from burstlab.pipelines.files import Files
from burstlab.pipelines.interface import Indices, Minibatch, Options, Pipeline, Stalled
from burstlab.pipelines.workers import Workers


class Direct(Pipeline):
    """Reads ``files`` from their own root, or those below ``root``.

    Any object with a length and ``[index]`` does as a data set where no ``root`` is given.
    """

    def __init__(self, files: Files | Any, options: Options, root: Path | None = None) -> None:
        self._files, self._options = files, options
        self._planned: deque[Indices] = deque()
        self._decoding: deque[Decoding] = deque()
        read = partial(_read_below, files, root) if root else partial(_read, files)
        self._workers = Workers(read, options.workers, options.transport or "processes")

    def plan(self, minibatches: Sequence[Indices]) -> None:
        self._planned.extend(minibatches)
        self._fill()

    def take(self) -> Minibatch:
        if not self._decoding:
            raise IndexError("no minibatch is planned")
        try:
            minibatch = self._decoding[0].result(self._files, self._options.time_limit_s)
        except Stalled:
            raise
        except Exception:
            self._forget_first()
            raise
        self._forget_first()
        return minibatch

    def reset(self) -> None:
        self._planned.clear()
        for decoding in self._decoding:
            decoding.cancel()
        self._decoding.clear()

    def close(self) -> None:
        self.reset()
        self._workers.close()

    def _forget_first(self) -> None:
        self._decoding.popleft()
        self._fill()

    def _fill(self) -> None:
        while self._planned and len(self._decoding) <= self._options.ahead:
            self._decoding.append(submit(self._workers, self._planned.popleft()))


def _read(files: Any, index: int, content: Any) -> Any:
    assert content is None
    return operator.getitem(files, index)


def _read_below(files: Files, root: Path, index: int, content: Any) -> Any:
    assert content is None
    return files.read(root, index)
