"""What can't work is refused before any daemon starts, with the reason in the record."""

from pathlib import Path

import pytest

from .running import TeraCell, without_java

DOUBLE = """#!/bin/sh
for name in home version specification.version; do echo "    java.$name = {}" >&2; done
"""


def test_java_that_is_not_there(tmp_path: Path) -> None:
    variables = {"PATH": without_java(tmp_path / "bin"), "JAVA_HOME": ""}
    cell = TeraCell(tmp_path).begin(variables=variables)
    assert cell.status() == 1
    assert "PATH: no java there: install envs/terasort, or set JAVA_HOME" in cell.reason()
    assert cell.left_behind() == []


def java(home: Path, version: str) -> Path:
    """One that tells its version and does nothing else."""
    program = home / "bin/java"
    program.parent.mkdir(parents=True)
    program.write_text(DOUBLE.format(version))
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("version", ["11", "25"])
def test_java_that_hadoop_does_not_run_on(tmp_path: Path, version: str) -> None:
    program = java(tmp_path / "jdk", version)
    cell = TeraCell(tmp_path).begin(variables={"JAVA_HOME": str(tmp_path / "jdk")})
    assert cell.status() == 1
    assert f"{program} is Java {version}, Hadoop wants 17 or 21: set JAVA_HOME" in cell.reason()
    assert cell.left_behind() == []


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_that_hadoop_runs_on(tmp_path: Path, version: str) -> None:
    """Hadoop is looked for next."""
    home = java(tmp_path / "jdk", version).parents[1]
    variables = {"JAVA_HOME": str(home), "HADOOP_JARS": str(tmp_path)}
    cell = TeraCell(tmp_path).begin(variables=variables)
    assert cell.status() == 1
    assert f"no Hadoop in {tmp_path}" in cell.reason()


@pytest.mark.requires("terasort")
def test_hadoop_that_is_not_there(tmp_path: Path) -> None:
    cell = TeraCell(tmp_path).begin(variables={"HADOOP_JARS": str(tmp_path)})
    assert cell.status() == 1
    assert f"no Hadoop in {tmp_path}: `make setup PARTS=terasort` gets it" in cell.reason()


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"size_mb": "ten"}, "TERASORT_SIZE_MB=ten: give a whole number from 1"),
        ({"spill": "tmpfs"}, "TERASORT_SPILL=tmpfs: give local or mount"),
        # One container for the master, none for a task: it would wait for ever.
        ({"node_memory_mb": "1535"}, "holds 1 container(s) of TERASORT_CONTAINER_MEMORY_MB=768"),
        ({"node_memory_mb": "512"}, "holds 0 container(s) of TERASORT_CONTAINER_MEMORY_MB=768"),
    ],
)
def test_parameters_that_can_not_be(tmp_path: Path, parameters: dict[str, str], why: str) -> None:
    cell = TeraCell(tmp_path).begin(**parameters)
    assert cell.status() == 1
    assert why in cell.reason()
