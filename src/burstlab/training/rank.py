"""One rank of a training, from the list of images to the report; the framework is a parameter."""

import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn, Protocol

from burstlab.errors import BurstlabError
from burstlab.pipelines import Images, Options
from burstlab.training import images, reading, shards
from burstlab.training.loop import Batches, Learner, train
from burstlab.training.parameters import Parameters
from burstlab.training.report import write_report

FIRST_WORDS_S = 60.0  # until mpirun has heard why the first rank died, and ends the others


class Group(Protocol):
    """All ranks."""

    rank: int
    size: int

    def broadcast(self, value: Any) -> Any:
        """What rank 0 has, on every rank."""

    def gather(self, value: Any) -> list[Any] | None:
        """What each rank has, on rank 0."""

    def barrier(self) -> None:
        """Return when every rank is here."""


class Framework(Protocol):
    """What trains, behind one interface."""

    group: Group

    def learner(self, chosen: Parameters, classes: int) -> Learner:
        """The network, equal on all ranks."""

    def batches(self, files: Images, chosen: Parameters, how: Options) -> Batches:
        """Minibatches without end of this rank's images, in another order in each epoch."""

    def checksum(self, learner: Learner) -> str:
        """SHA-256 of all trained parameters."""

    def facts(self) -> dict[str, str]:
        """What it is: ``engine``, ``collectives``, ``device``."""


class TooFew(BurstlabError):
    """Images, for what is asked."""


class Deserted(Exception):
    """What all ranks do together failed here: mostly since another has died in the middle of it."""


def main(workload: str, make: Callable[[], Framework]) -> None:
    """Train, and leave what rank 0 reports in BURSTLAB_CELL_DIR; a failure ends all ranks."""
    guarded(workload, lambda: _train(workload, make))


def guarded(workload: str, train: Callable[[], None]) -> None:
    """Train, or say why not in one line and end all ranks."""
    try:
        train()
    except (BurstlabError, OSError) as error:
        fail(workload, str(error))
    except Deserted as error:
        time.sleep(FIRST_WORDS_S)
        fail(workload, f"what all ranks do together failed here: {error}".splitlines()[0])
    except Exception as error:
        traceback.print_exc()
        told = str(error).splitlines()[0] if str(error) else ""
        fail(workload, f"{type(error).__name__}: {told}")


def fail(workload: str, why: str) -> NoReturn:
    """End this rank at once, and with it all others: an orderly end would wait for them."""
    rank, host = os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ["BURSTLAB_HOST"]
    print(f"{workload}: rank {rank} on {host}: {why}", file=sys.stderr, flush=True)
    os._exit(1)


def _train(workload: str, make: Callable[[], Framework]) -> None:
    started = [float(os.environ["BURSTLAB_RANKS_STARTED"]), time.time()]
    chosen = Parameters.of(workload, os.environ)
    framework = make()
    group = framework.group
    cell, data = Path(os.environ["BURSTLAB_CELL_DIR"]), Path(os.environ["BURSTLAB_DATA"])
    text = (cell / images.LIST).read_text(encoding="utf-8") if group.rank == 0 else None
    paths = [path for path, _ in images.listed(group.broadcast(text))]
    images.check_folders(data, paths)
    files = reading.images(data, paths, chosen)
    trained, held_back = shards.held_back(len(files), chosen.validation)
    mine = files.part(shards.shard(trained, group.rank, group.size))
    if len(mine) < chosen.batch:
        wanted = group.size * chosen.batch
        raise TooFew(f"{len(trained)} images: fewer than the {wanted} of a minibatch on each rank")
    if chosen.validation and len(held_back) < group.size:
        raise TooFew(f"{len(held_back)} images to validate with: fewer than {group.size} ranks")
    how = reading.options(data, chosen)
    learner = framework.learner(chosen, files.classes)
    with ExitStack() as opened:
        validation = None
        if chosen.validation:
            seen = files.part(shards.part(held_back, group.rank, group.size))
            validation = reading.Validation(seen, chosen, how)
            opened.callback(validation.close)
        group.barrier()
        epochs = train(
            chosen,
            learner,
            lambda: opened.enter_context(framework.batches(mine, chosen, how)),
            validation,
            rank=group.rank,
            ranks=group.size,
            shard=len(mine),
        )
    told = {"rank": group.rank, "host": os.environ["BURSTLAB_HOST"], "epochs": epochs}
    everyones = group.gather({**told, "sha256": framework.checksum(learner)})
    if everyones is not None:
        about = {**framework.facts(), "images": len(files), "shard": len(mine)}
        write_report(cell, chosen, everyones, {**about, "started": started})
    group.barrier()
