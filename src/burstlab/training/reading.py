"""How minibatches come to a rank: one of the pipelines, with its own place on the node."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from burstlab.pipelines import Images, Minibatches, Mode, Options, open_pipeline
from burstlab.training.augmentation import decoded_side
from burstlab.training.parameters import Parameters


def images(data: Path, paths: Sequence[str], chosen: Parameters) -> Images:
    """The data set, scaled to what squares are cut out of."""
    return Images(data, paths, side=decoded_side(chosen.side), dtype="uint8")


def options(data: Path, chosen: Parameters) -> Options:
    """Of every pipeline of this rank. ``ssd`` reads the data where they were staged.

    Where the cell has an agent on every host (--staging lazy), ``lazy`` asks it: the list of images
    has the manifest's order, and with it the agent's numbers.
    """
    socket = os.environ.get("BURSTLAB_AGENT") if chosen.mode == "lazy" else None
    local = data
    if chosen.mode != "ssd":
        local = Path(os.environ["BURSTLAB_LOCAL"]) / "training"
        local.mkdir(parents=True, exist_ok=True)
    return Options(
        workers=chosen.generation,
        copiers=chosen.copiers,
        local=local,
        agent=Path(socket) if socket else None,
        time_limit_s=chosen.patience,
    )


class Validation:
    """The images that are not trained on, once each time it is called, by the same pipeline."""

    def __init__(self, files: Images, chosen: Parameters, how: Options) -> None:
        pipeline = open_pipeline(cast(Mode, chosen.mode), files, how)
        everything = list(range(len(files)))
        self._per_epoch = -(-len(files) // chosen.batch)
        self._minibatches = Minibatches(
            pipeline, lambda _: everything, chosen.batch, epochs=chosen.epochs
        )

    def __call__(self) -> Iterator[list[Any]]:
        return (next(self._minibatches) for _ in range(self._per_epoch))

    def close(self) -> None:
        """End its processes."""
        self._minibatches.close()
