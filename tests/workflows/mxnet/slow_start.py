"""A training whose ranks are slow until they train: packing and the first pass through the network
end late, and each rank leaves in BURSTLAB_CELL_DIR when they did.

The program is a launcher, and of each rank.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "workflows/mxnet"))

DELAY_S = 0.5
RANK = "OMPI_COMM_WORLD_RANK"


def launch() -> int:
    """As launch.py does."""
    from launch import variables  # type: ignore[import-not-found]
    from parameters import Parameters  # type: ignore[import-not-found]

    from burstlab.training.launch import main

    return main("mxnet", Path(__file__).resolve(), Parameters, variables)


def train() -> None:
    """As train.py does, but slowly."""
    import reading  # type: ignore[import-not-found]
    import train  # type: ignore[import-not-found]

    ended: dict[str, float] = {}
    for kind, name in ((reading.RecordIO, "_pack"), (train.Training, "_gradients")):
        setattr(kind, name, once_late(getattr(kind, name), name, ended))
    train.main()
    told = Path(os.environ["BURSTLAB_CELL_DIR"], f"ended-{os.environ[RANK]}.json")
    told.write_text(json.dumps(ended))


def once_late(method: Callable[..., Any], name: str, ended: dict[str, float]) -> Callable[..., Any]:
    """The same method, whose first call ends late."""

    def call(*arguments: Any) -> Any:
        found = method(*arguments)
        if name not in ended:
            time.sleep(DELAY_S)
            ended[name] = time.time()
        return found

    return call


if __name__ == "__main__":
    if RANK in os.environ:
        train()
    else:
        sys.exit(launch())
