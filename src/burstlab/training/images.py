"""Which images are trained on, and the label of each: the place of its folder among all folders."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from burstlab.errors import BurstlabError

LIST = "images.lst"  # as MXNet's im2rec writes it: number, label, path
SUFFIXES = (".jpeg", ".jpg")


class NoImages(BurstlabError):
    """Why there is nothing to train on, in one line."""


def write_list(data: Path, manifest: str, directory: Path) -> int:
    """Write the list into a directory; returns how many images it has.

    A manifest knows what belongs to the data set; without one it is what lies there. Raises
    NoImages, ConfigurationError.
    """
    from burstlab.dataset.manifest import read_manifest

    paths = [entry.path for entry in read_manifest(Path(manifest)).files] if manifest else []
    paths = paths or sorted(found(data))
    if not paths:
        raise NoImages(f"{data}: no JPEG file in any class folder (BURSTLAB_DATA)")
    folders = sorted({path.partition("/")[0] for path in paths})
    labels = {folder: label for label, folder in enumerate(folders)}
    with (directory / LIST).open("w", encoding="utf-8") as lines:
        for number, path in enumerate(paths):
            lines.write(f"{number}\t{labels[path.partition('/')[0]]}\t{path}\n")
    return len(paths)


def found(data: Path) -> Iterable[str]:
    """Paths of the images below a directory of class folders."""
    for folder in data.iterdir():
        if folder.is_dir():
            names = (path.name for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
            yield from (f"{folder.name}/{name}" for name in names)


def listed(text: str) -> list[tuple[str, int]]:
    """Path and label of each image, from the text of a list."""
    rows = (line.split("\t") for line in text.splitlines())
    return [(path, int(label)) for _, label, path in rows]


def check_folders(data: Path, paths: Sequence[str]) -> None:
    """Raises NoImages for a class folder that this host does not see."""
    there = {entry.name for entry in os.scandir(data) if entry.is_dir()}
    missing = sorted({path.partition("/")[0] for path in paths} - there)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise NoImages(f"{data}: the class folder {missing[0]}{more} is missing")
