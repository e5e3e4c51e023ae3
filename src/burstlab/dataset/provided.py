"""What every kind of data set answers: where its files come from, and which they are."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.dataset.manifest import absolute
from burstlab.errors import ConfigurationError


@dataclass(frozen=True)
class Provided:
    """Where the files of a data set are, and how they came there."""

    source: str  # given, fetched or synthetic
    details: Mapping[str, Any]
    root: Path
    paths: Sequence[str]  # of its files, below root
    patterns: tuple[str, ...]  # what matches them and is not among them is new; () if nothing is


def origin(source: str, directory: str | None, variable: str) -> tuple[str, str]:
    """Which way the files come, and the directory where they are given; decided without a look.

    `auto` is `given` where a directory is named, by the environment variable or else the
    configuration, and `synthetic` otherwise. Raises ConfigurationError when files are to be given
    and no place is.
    """
    place = os.environ.get(variable, "") or os.path.expandvars(directory or "")
    if source == "auto":
        source = "given" if place else "synthetic"
    if source != "given":
        return source, ""
    if not place:
        raise ConfigurationError(
            f"source: given, but no directory: set {variable} or `directory` to one"
        )
    return source, str(absolute(Path(place).expanduser()))
