"""Tiles of the Two Micron All Sky Survey: given, fetched from the archive, or synthetic."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.dataset import Report, silent
from burstlab.dataset.manifest import absolute, members
from burstlab.dataset.model import TwoMass
from burstlab.errors import ConfigurationError

VARIABLE = "BURSTLAB_2MASS"
TILES = "*.fits"
TRUTH = "truth.json"


@dataclass(frozen=True)
class Provided:
    """Where the files of a data set are, and how they came there."""

    source: str  # given, fetched or synthetic
    details: Mapping[str, Any]
    root: Path
    patterns: tuple[str, ...]  # of the files that belong to it


def origin(dataset: TwoMass) -> tuple[str, str]:
    """Which way the tiles come, and the directory where they are given; decided without a look.

    `auto` is `given` where a directory is named, by BURSTLAB_2MASS or else the configuration, and
    `synthetic` otherwise. Raises ConfigurationError when tiles are to be given and no place is.
    """
    directory = os.environ.get(VARIABLE, "") or os.path.expandvars(dataset.directory or "")
    source = dataset.source
    if source == "auto":
        source = "given" if directory else "synthetic"
    if source != "given":
        return source, ""
    if not directory:
        raise ConfigurationError(
            f"source: given, but no directory: set {VARIABLE} or `directory` to one of tiles"
        )
    return source, str(absolute(Path(directory).expanduser()))


def provide(dataset: TwoMass, beside: Path, report: Report = silent) -> Provided:
    """Bring the tiles where they are not given: to a directory in ``beside``.

    Raises ConfigurationError that names the directory without tiles, or the tile that is damaged.
    """
    source, directory = origin(dataset)
    if source == "given":
        provided = _given(Path(directory))
    elif source == "fetched":
        provided = _fetched(dataset, beside, report)
    else:
        provided = _synthetic(dataset, beside, report)
    _check_tiles(provided.root, report)
    return provided


def _given(directory: Path) -> Provided:
    if not directory.is_dir():
        raise ConfigurationError(f"{directory}: no such directory of 2MASS tiles (see {VARIABLE})")
    details = {"directory": str(directory)}
    if (directory / TRUTH).exists():
        # Whoever gives tiles that burstlab made is not told that they are real.
        return Provided("synthetic", details, directory, (TILES, TRUTH))
    return Provided("given", details, directory, (TILES,))


def _fetched(dataset: TwoMass, beside: Path, report: Report) -> Provided:
    from burstlab.dataset.archive import fetch

    assert dataset.region is not None  # the model sees to it
    root = fetch(dataset.region, dataset.band, beside, report)
    details = {"survey": "2MASS", "band": dataset.band, **dataset.region.model_dump()}
    return Provided("fetched", details, root, (TILES,))


def _synthetic(dataset: TwoMass, beside: Path, report: Report) -> Provided:
    from burstlab.dataset.synthetic import make_tiles

    root = beside / "synthetic"
    make_tiles(root, dataset.synthetic, report)
    return Provided("synthetic", dataset.synthetic.model_dump(), root, (TILES, TRUTH))


def _check_tiles(root: Path, report: Report) -> None:
    from burstlab.dataset.tiles import fault

    names = members(root, [TILES])
    if not names:
        raise ConfigurationError(f"{root}: no tiles there: {TILES} files are wanted")
    for number, name in enumerate(names, 1):
        if problem := fault(root / name):
            raise ConfigurationError(f"{root / name}: {problem}")
        report("tiles checked", number, len(names))
