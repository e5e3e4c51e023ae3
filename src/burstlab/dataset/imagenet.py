"""ILSVRC2012's training images: the tree that a user has, or one like it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from burstlab.dataset import Report, provided, silent
from burstlab.dataset.manifest import IN_FLIGHT
from burstlab.dataset.model import ImageNet
from burstlab.dataset.provided import Provided
from burstlab.errors import ConfigurationError

VARIABLE = "BURSTLAB_IMAGENET"
SUFFIXES = (".jpeg", ".jpg")
GREY_MODES = ("1", "L", "LA")


def origin(dataset: ImageNet) -> tuple[str, str]:
    """Which way the images come, and where they are given. Raises ConfigurationError."""
    return provided.origin(dataset.source, dataset.directory, VARIABLE)


def arguments(dataset: ImageNet, source: str) -> object:
    """What the images depend on besides their origin."""
    return dataset.synthetic if source == "synthetic" else dataset.grey


def provide(dataset: ImageNet, beside: Path, report: Report = silent) -> Provided:
    """Find the images, or make them in a directory in ``beside``.

    Raises ConfigurationError that names the directory without images, the class folder that is
    empty, or the file that is no image.
    """
    source, directory = origin(dataset)
    if source == "synthetic":
        from burstlab.dataset.images import make_images

        root = beside / "synthetic"
        make_images(root, dataset.synthetic, report)
        return Provided(source, dataset.synthetic.model_dump(), root, _images(root), ())
    root = Path(directory)
    paths = _images(root)
    grey = _grey(root, paths, report)
    details = {"directory": directory, "grey": dataset.grey, "grey_files": len(grey)}
    if dataset.grey == "exclude":
        paths = [path for path in paths if path not in grey]
    return Provided(source, details, root, paths, ())


def _images(root: Path) -> list[str]:
    """Paths of the images, one level of class folders below ``root``."""
    try:
        folders = sorted(path for path in root.iterdir() if path.is_dir())
    except OSError as error:
        raise ConfigurationError(f"{root}: {error.strerror} (see {VARIABLE})") from error
    if not folders:
        raise ConfigurationError(f"{root}: no class folders there (see {VARIABLE})")
    found = []
    for folder in folders:
        names = [path.name for path in folder.iterdir() if path.suffix.lower() in SUFFIXES]
        if not names:
            raise ConfigurationError(f"{folder}: no JPEG file in this class folder")
        found += [f"{folder.name}/{name}" for name in names]
    return sorted(found)


def _grey(root: Path, paths: Sequence[str], report: Report) -> frozenset[str]:
    """Those without colours, told by their headers; the paper left them out."""
    grey = []
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        modes = pool.map(lambda path: _mode(root / path), paths)
        for number, (path, mode) in enumerate(zip(paths, modes, strict=True), 1):
            if mode in GREY_MODES:
                grey.append(path)
            report("headers read", number, len(paths))
    return frozenset(grey)


def _mode(path: Path) -> str:
    from PIL import Image

    try:  # not by suffix: one file of ILSVRC2012 is a PNG of that name
        with Image.open(path) as image:
            return image.mode
    except (OSError, SyntaxError) as error:
        said = getattr(error, "strerror", None) or "is not an image"
        raise ConfigurationError(f"{path}: {said}") from error
