"""Make, verify or list data sets."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from burstlab.dataset import Report, silent
from burstlab.errors import BurstlabError, ConfigurationError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``make NAME``, ``verify MANIFEST``, ``list``."""
    actions = parser.add_subparsers(dest="action", required=True)
    make = actions.add_parser("make", help="provide the files and write their manifest")
    make.add_argument("name", help="one of config/datasets.yaml")
    make.add_argument(
        "--output",
        type=Path,
        metavar="MANIFEST",
        help="default: results/datasets/NAME/manifest.json; files that are made lie beside it",
    )
    verify = actions.add_parser("verify", help="compare the files with their manifest")
    verify.add_argument("manifest", type=Path)
    verify.add_argument("--full", action="store_true", help="read every file again")
    actions.add_parser("list", help="the data sets there are, and what became of them")


def main(arguments: argparse.Namespace) -> int:
    """Returns 0; what is wrong with a data set is an error."""
    if arguments.action == "make":
        _make(arguments.name, arguments.output)
    elif arguments.action == "verify":
        _verify(arguments.manifest, arguments.full)
    else:
        _list()
    return 0


def _make(name: str, output: Path | None) -> None:
    from burstlab.config.load import allowed
    from burstlab.dataset.make import make, manifest_path
    from burstlab.dataset.model import DATASETS, load_datasets

    datasets = load_datasets()
    if name not in datasets:
        raise ConfigurationError(f"{DATASETS}: no data set {name!r}{allowed(name, datasets)}")
    with _progress() as report:
        made = make(name, datasets[name], output or manifest_path(name), report)
    size = f"{made.file_count} files, {made.size_bytes / 1e6:.1f} MB"
    print(f"{made.path}: {made.source}, {size} in {made.root}")


def _verify(path: Path, full: bool) -> None:
    from burstlab.dataset.manifest import read_manifest, verify

    manifest = read_manifest(path)
    if faults := verify(manifest, full=full):
        print(*faults, sep="\n")
        raise ConfigurationError(f"{path}: {manifest.root} is not what the manifest says")
    print(f"{path}: {manifest.file_count} files as they were in {manifest.root}")


def _list() -> None:
    from burstlab.dataset.make import manifest_path, origin
    from burstlab.dataset.manifest import read_manifest
    from burstlab.dataset.model import load_datasets

    for name, dataset in load_datasets().items():
        path = manifest_path(name)
        try:
            source = " ".join(origin(dataset)).strip()
            made = read_manifest(path) if path.exists() else None
        except BurstlabError as error:
            print(f"{name:14} {dataset.kind:8} {error}")
            continue
        state = f"{made.source}, {made.file_count} files in {made.root}" if made else "not made yet"
        print(f"{name:14} {dataset.kind:8} {state}; would be: {source}")


@contextmanager
def _progress() -> Iterator[Report]:
    """A bar for each thing that is done, where somebody watches."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars = {}

        def report(doing: str, done: int, total: int) -> None:
            if doing not in bars:
                bars[doing] = progress.add_task(doing)
            progress.update(bars[doing], completed=done, total=total)

        yield report
