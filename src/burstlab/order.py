"""In which order the cells of a campaign run.

A file system changes its speed over hours (other users, a filling disk), so what is compared
should lie close together in time: all points of one repeat come before the next repeat, storages
take turns, and within that the order is random, from a seed that the records keep.
"""

import random
from collections.abc import Iterable
from pathlib import PurePath


def interleaved(records: Iterable[str], seed: int) -> list[str]:
    """Paths of records (docs/reference.md, Files) in the order in which their cells should run."""
    queues: dict[tuple[int, str], list[str]] = {}
    for path in sorted(set(records)):
        queues.setdefault((_repeat(path), _storage(path)), []).append(path)
    turns = []
    for (repeat, storage), queue in queues.items():
        generator = random.Random(f"{seed} {repeat} {storage}")
        generator.shuffle(queue)
        turns += [(repeat, turn, generator.random(), path) for turn, path in enumerate(queue)]
    return [path for *_, path in sorted(turns)]


def _repeat(path: str) -> int:
    return int(PurePath(path).parts[-2].removeprefix("r"))


def _storage(path: str) -> str:
    return PurePath(path).parts[-5]
