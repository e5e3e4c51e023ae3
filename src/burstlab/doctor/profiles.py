"""Snakemake profiles: ``--profile NAME`` looks in the user's configuration directory.

Snakemake looks for NAME in the current directory, ``$XDG_CONFIG_HOME/snakemake`` (default
``~/.config/snakemake``) and the site's directory, not in ``profiles/``; so ``make setup`` makes
one symbolic link there for each profile. Standard library only.
"""

import os
from enum import Enum
from pathlib import Path


class State(Enum):
    """What stands where the link of a profile belongs."""

    LINKED = "linked"
    ABSENT = "absent"
    OTHER_LINK = "a link to another place"
    NOT_A_LINK = "not a link"


def configuration_directory() -> Path:
    """Where this user's Snakemake profiles are looked for."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME", "/"), ".config")
    return Path(base, "snakemake")


def profiles(root: Path) -> list[Path]:
    """The profiles of a checkout, but for `default`, which Snakemake reads by itself."""
    directories = sorted(path for path in (root / "profiles").glob("*/") if path.is_dir())
    return [directory for directory in directories if directory.name != "default"]


def state(link: Path, profile: Path) -> State:
    """What stands at ``link``, which should lead to ``profile``."""
    if link.is_symlink():
        return State.LINKED if link.resolve() == profile.resolve() else State.OTHER_LINK
    return State.NOT_A_LINK if link.exists() else State.ABSENT
