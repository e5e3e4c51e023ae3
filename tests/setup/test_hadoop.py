"""Hadoop's jars are pinned by checksum without an address, fetched once, and compared."""

import re
from pathlib import Path

import pytest

from tests.setup.checkout import ROOT
from tools.setup import hadoop
from tools.setup.failure import DownloadFailed

LOCK = (ROOT / "envs" / hadoop.PART / "jars.sha256").read_text()
# Writes the jars that it is told to into its output directory, as Maven does.
MAVEN = """#!/bin/sh
for word; do case $word in -DoutputDirectory=*) cd "${word#*=}";; esac; done
for jar in $JARS; do printf %s "content of $jar" > "$jar"; done
echo fetched >> "$FETCHES"
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose pom.xml means two jars, with their lock, and a Maven that brings them."""
    (tmp_path / "envs" / hadoop.PART).mkdir(parents=True)
    (tmp_path / "envs" / hadoop.PART / "pom.xml").write_text("<project/>")
    (tmp_path / ".tools").mkdir()
    program = tmp_path / "bin/mvn"
    program.parent.mkdir()
    program.write_text(MAVEN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("JARS", "a-1.jar b-2.jar")
    monkeypatch.setenv("FETCHES", str(tmp_path / "fetches"))
    hadoop.lock(tmp_path)
    (tmp_path / "fetches").unlink()
    return tmp_path


def test_the_lock_has_names_versions_and_checksums_only() -> None:
    pattern = re.compile(r"[0-9a-f]{64}  [\w.-]+-\d[\w.-]*\.jar")
    lines = LOCK.splitlines()
    assert [line for line in lines if not pattern.fullmatch(line)] == []
    assert "hadoop-mapreduce-examples-3.4.2.jar" in LOCK and "://" not in LOCK


def test_jars_are_fetched_once(root: Path) -> None:
    assert hadoop.bring_up_to_date(root)
    jars = root / ".tools/hadoop/jars"
    assert sorted(path.name for path in jars.iterdir()) == ["a-1.jar", "b-2.jar"]
    assert not hadoop.bring_up_to_date(root)
    assert (root / "fetches").read_text() == "fetched\n"


@pytest.mark.parametrize("brought", ["a-1.jar", "a-1.jar b-2.jar c-3.jar", "a-1.jar b-3.jar"])
def test_other_jars_than_those_of_the_lock_are_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, brought: str
) -> None:
    monkeypatch.setenv("JARS", brought)
    with pytest.raises(DownloadFailed, match=r"jars\.sha256 are not what Maven brought"):
        hadoop.bring_up_to_date(root)
    assert not (root / ".tools/hadoop/jars").exists()


def test_another_lock_fetches_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hadoop.bring_up_to_date(root)
    monkeypatch.setenv("JARS", "a-2.jar")
    hadoop.lock(root)
    assert hadoop.bring_up_to_date(root)
    jars = root / ".tools/hadoop/jars"
    assert [path.name for path in jars.iterdir()] == ["a-2.jar"]
