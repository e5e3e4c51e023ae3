"""Did all ranks train the same network? Tells it in one line; exit status 1 if they did not."""

import json
import math
import os
import sys
from pathlib import Path

from parameters import Parameters


class WrongTraining(Exception):
    """What is wrong, in one line."""


def judge(cell: Path, nodes: int, chosen: Parameters) -> str:
    """What was found right. Raises WrongTraining."""
    ranks = json.loads((cell / "ranks.json").read_text())
    wanted = nodes * chosen.ranks
    if [rank["rank"] for rank in ranks] != list(range(wanted)):
        raise WrongTraining(f"{len(ranks)} ranks report, {wanted} were started")
    for rank in ranks[1:]:
        if rank["sha256"] != ranks[0]["sha256"]:
            raise WrongTraining(
                f"the parameters of rank {rank['rank']} on {rank['host']} are not those of rank 0"
            )
    for rank in ranks:
        losses = [loss for epoch in rank["epochs"] for loss in epoch["losses"]]
        if not all(map(math.isfinite, losses)):
            raise WrongTraining(f"the loss of rank {rank['rank']} is {losses[-1]}")
        images = [epoch["images"] for epoch in rank["epochs"]]
        if len(images) != chosen.epochs or len(set(images)) != 1:
            raise WrongTraining(f"rank {rank['rank']} saw {images} images in its epochs")
    return f"{wanted} ranks have the same parameters ({ranks[0]['sha256'][:12]})"


def main() -> int:
    cell = Path(os.environ["BURSTLAB_CELL_DIR"])
    try:
        found = judge(cell, int(os.environ["BURSTLAB_NODES"]), Parameters.of(os.environ))
    except (WrongTraining, OSError, ValueError, KeyError) as error:
        print(f"training wrong: {error}")
        return 1
    print(f"training ok: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
