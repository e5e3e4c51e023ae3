"""From a declared data set to its manifest."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from burstlab.dataset import Report, imagenet, silent, twomass
from burstlab.dataset.manifest import Manifest, absolute, read_manifest, spot_check
from burstlab.dataset.model import Dataset
from burstlab.dataset.writing import scan, write_manifest
from burstlab.errors import ConfigurationError

RESULTS = Path("results/datasets")
KINDS: dict[str, Any] = {"2mass": twomass, "imagenet": imagenet}


@cache
def manifest_path(name: str) -> Path:
    """Where the manifest of a data set is unless another place is asked for."""
    return RESULTS / name / "manifest.json"


def make(name: str, dataset: Dataset, path: Path, report: Report = silent) -> Manifest:
    """Provide the files and write their manifest to ``path``, as the last thing of all.

    What is not given lies beside the manifest. Raises ConfigurationError that names the file that
    is missing or damaged; then there is no manifest.
    """
    path = absolute(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        provided = KINDS[dataset.kind].provide(dataset, path.parent, report)
        return write_manifest(
            path,
            scan(provided.root, provided.paths, report),
            name=name,
            source=provided.source,
            details=provided.details,
            root=provided.root,
            patterns=provided.patterns,
            definition=conditions(dataset),
        )
    except OSError as error:
        place = error.filename or path.parent
        raise ConfigurationError(f"data set {name}: {place}: {error.strerror}") from error


def conditions(dataset: Dataset) -> str:
    """What the files depend on, in one line: when it changes, the manifest is outdated."""
    source, directory = origin(dataset)
    place = f" {directory}" if directory else ""
    return f"{source}{place} {KINDS[dataset.kind].arguments(dataset, source)!r}"


def content(name: str, dataset: Dataset) -> str | None:
    """What a data set holds, in one line: when it changes, what was measured with it is outdated.

    What files were given is known by their manifest, wherever they lie; None where there is none.
    """
    if origin(dataset)[0] != "given":
        return conditions(dataset)
    if not manifest_path(name).exists():
        return None
    return f"given {read_manifest(manifest_path(name)).sha256}"


def is_replaced(name: str, dataset: Dataset) -> bool:
    """Whether there is a manifest, and it will be made again and name other files.

    Given files that only moved are compared with it, up to a thousand.
    """
    path = manifest_path(name)
    if not path.exists():
        return False
    manifest = read_manifest(path)
    if manifest.definition in ("", conditions(dataset)):
        return False
    source, directory = origin(dataset)
    if source != "given" or not manifest.definition.startswith("given "):
        return True
    return bool(spot_check(replace(manifest, root=Path(directory))))


def origin(dataset: Dataset) -> tuple[str, str]:
    """Which way the files come, and the directory where they are given; decided without a look.

    Raises ConfigurationError when files are to be given and no place is.
    """
    found: tuple[str, str] = KINDS[dataset.kind].origin(dataset)
    return found
