"""The locks: whole, pinned by digest, free of addresses, in step with pyproject and the guide."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.setup.checkout import ROOT, locked_entries

LOCKS = sorted((ROOT / "envs").glob("*/*.lock"))
GUIDE = ROOT / "docs" / "install.md"


def direct_dependencies() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [
        Requirement(text)
        for text in [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    ]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: f"{lock.parent.name}/{lock.name}")
def test_lock_has_versions_and_digests_but_no_addresses(lock: Path) -> None:
    assert "://" not in lock.read_text()
    assert not re.search(r"--(extra-)?index|--find-links|@ ", lock.read_text())
    entries = locked_entries(lock)
    assert entries
    for name, lines in entries.items():
        assert re.match(r"[\w.\[\]-]+==\S+", lines), name
        assert "--hash=sha256:" in lines, name


def test_lock_satisfies_the_project() -> None:
    entries = locked_entries(ROOT / "envs" / "burstlab" / "requirements.lock")
    for requirement in direct_dependencies():
        version = entries[requirement.name].split("==")[1].split()[0]
        assert requirement.specifier.contains(version), f"{requirement}: {version}; make lock"


def test_guide_lists_every_direct_dependency_and_its_licence() -> None:
    rows = dict(re.findall(r"^\| `([\w.-]+)` \| [^|]* \| ([^|]+?) \|$", GUIDE.read_text(), re.M))
    assert set(rows) == {requirement.name for requirement in direct_dependencies()}
    for name, licence in rows.items():
        assert declared(name) == licence, name


def declared(name: str) -> str:
    """The licence a distribution declares: an SPDX expression, else a field, else a classifier."""
    about = metadata.metadata(name)
    for field in ("License-Expression", "License"):
        if (value := about.get(field)) and "\n" not in value and len(value) < 60:
            return value
    classifiers = [c for c in about.get_all("Classifier", []) if c.startswith("License ::")]
    return classifiers[0].rsplit(" :: ", 1)[1]
