"""Tiles of the Two Micron All Sky Survey: given, fetched from the archive, or synthetic."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burstlab.dataset import Report, provided, silent
from burstlab.dataset.manifest import members
from burstlab.dataset.model import TwoMass
from burstlab.dataset.provided import Provided
from burstlab.errors import ConfigurationError

VARIABLE = "BURSTLAB_2MASS"
TILES = "*.fits"
TRUTH = "truth.json"


def origin(dataset: TwoMass) -> tuple[str, str]:
    """Which way the tiles come, and where they are given. Raises ConfigurationError."""
    return provided.origin(dataset.source, dataset.directory, VARIABLE)


def arguments(dataset: TwoMass, source: str) -> object:
    """What the tiles depend on besides their origin."""
    if source == "given":
        return None
    return (dataset.band, dataset.region if source == "fetched" else dataset.synthetic)


def provide(dataset: TwoMass, beside: Path, report: Report = silent) -> Provided:
    """Bring the tiles where they are not given: to a directory in ``beside``.

    Raises ConfigurationError that names the directory without tiles, or the tile that is damaged.
    """
    source, directory = origin(dataset)
    if source == "given":
        found = _given(Path(directory))
    elif source == "fetched":
        found = _fetched(dataset, beside, report)
    else:
        found = _synthetic(dataset, beside, report)
    _check_tiles(found.root, report)
    return found


def _given(directory: Path) -> Provided:
    if not directory.is_dir():
        raise ConfigurationError(f"{directory}: no such directory of 2MASS tiles (see {VARIABLE})")
    details = {"directory": str(directory)}
    if (directory / TRUTH).exists():
        # Whoever gives tiles that burstlab made is not told that they are real.
        return _tiles("synthetic", details, directory, (TILES, TRUTH))
    return _tiles("given", details, directory, (TILES,))


def _fetched(dataset: TwoMass, beside: Path, report: Report) -> Provided:
    from burstlab.dataset.archive import fetch

    assert dataset.region is not None  # the model sees to it
    root = fetch(dataset.region, dataset.band, beside, report)
    details = {"survey": "2MASS", "band": dataset.band, **dataset.region.model_dump()}
    return _tiles("fetched", details, root, (TILES,))


def _synthetic(dataset: TwoMass, beside: Path, report: Report) -> Provided:
    from burstlab.dataset.synthetic import make_tiles

    root = beside / "synthetic"
    make_tiles(root, dataset.synthetic, report)
    return _tiles("synthetic", dataset.synthetic.model_dump(), root, (TILES, TRUTH))


def _tiles(
    source: str, details: Mapping[str, Any], root: Path, patterns: tuple[str, ...]
) -> Provided:
    paths = [path for path in members(root, patterns) if (root / path).is_file()]
    return Provided(source, details, root, paths, patterns)


def _check_tiles(root: Path, report: Report) -> None:
    from burstlab.dataset.tiles import fault

    names = members(root, [TILES])
    if not names:
        raise ConfigurationError(f"{root}: no tiles there: {TILES} files are wanted")
    for number, name in enumerate(names, 1):
        if problem := fault(root / name):
            raise ConfigurationError(f"{root / name}: {problem}")
        report("tiles checked", number, len(names))
