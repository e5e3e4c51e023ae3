"""Four ways in which minibatches come to a training loop, behind one interface.

``direct``: decode workers read from the parallel file system; ``ssd``: from a copy that was staged
before; ``paper3``: copied by the three-stage pipeline of Serizawa and Tatebe; ``lazy``: prefetched
by burstio. The same order gives the same minibatches, bit for bit, in all of them.

The front ends: ``Minibatches`` for any program, ``burstlab.pipelines.chainer`` and
``burstlab.pipelines.torch``. Nothing here needs burstlab's configuration, and numpy may be as old
as Chainer wants it.
"""

from typing import Any, Literal, get_args

from burstlab.pipelines.files import Files, Images
from burstlab.pipelines.interface import (
    Indices,
    Minibatch,
    Options,
    Pipeline,
    PipelineError,
    Stalled,
)
from burstlab.pipelines.minibatches import Minibatches

Mode = Literal["direct", "ssd", "paper3", "lazy"]
MODES: tuple[Mode, ...] = get_args(Mode)

__all__ = [
    "MODES",
    "Files",
    "Images",
    "Indices",
    "Minibatch",
    "Minibatches",
    "Mode",
    "Options",
    "Pipeline",
    "PipelineError",
    "Stalled",
    "open_pipeline",
]


def open_pipeline(mode: Mode, files: Files | Any, options: Options | None = None) -> Pipeline:
    """The pipeline of that name, to be closed by the caller (``with``).

    ``direct`` takes any data set that has a length and ``[index]``, the others take Files. Raises
    PipelineError for what does not go together, OSError where the source or an agent is not there.
    """
    options = options or Options()
    if mode not in MODES:
        raise PipelineError(f"mode {mode!r}: there are {', '.join(MODES)}")
    if mode == "direct":
        from burstlab.pipelines.direct import Direct

        return Direct(files, options)
    if not isinstance(files, Files):
        raise PipelineError(f"mode {mode}: {type(files).__name__} is no burstlab.pipelines.Files")
    if mode == "lazy":
        from burstlab.pipelines.lazy import Lazy

        return Lazy(files, options)
    if options.local is None:
        raise PipelineError(f"mode {mode}: local= is wanted, a directory on node-local storage")
    if mode == "ssd":
        from burstlab.pipelines.direct import Direct

        return Direct(files, options, options.local)
    from burstlab.pipelines.paper3 import Paper3

    return Paper3(files, options, options.local)
