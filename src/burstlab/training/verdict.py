"""Did all ranks train the same network, to the end? Told in one line."""

import json
import math
from pathlib import Path

from burstlab.errors import BurstlabError
from burstlab.training.parameters import AnyParameters
from burstlab.training.report import RANKS


class WrongTraining(BurstlabError):
    """What is wrong, in one line."""


def judge(cell: Path, nodes: int, chosen: AnyParameters) -> str:
    """What was found right. Raises WrongTraining; OSError, ValueError where nothing is reported."""
    ranks = json.loads((cell / RANKS).read_text())
    wanted = nodes * chosen.ranks
    if [rank["rank"] for rank in ranks] != list(range(wanted)):
        raise WrongTraining(f"{len(ranks)} ranks report, {wanted} were started")
    images = [[epoch["images"] for epoch in rank["epochs"]] for rank in ranks]
    for rank, own in zip(ranks, images, strict=True):
        who = f"rank {rank['rank']} on {rank['host']}"
        if rank["sha256"] != ranks[0]["sha256"]:
            raise WrongTraining(f"the parameters of {who} are not those of rank 0")
        losses = [loss for epoch in rank["epochs"] for loss in epoch["losses"]]
        if wrong := [loss for loss in losses if not math.isfinite(loss)]:
            raise WrongTraining(f"the loss of {who} is {wrong[0]}")
        if len(own) != chosen.epochs or own != images[0]:
            raise WrongTraining(f"{who} saw {own} images in its epochs")
    return f"{wanted} ranks have the same parameters ({ranks[0]['sha256'][:12]})"
