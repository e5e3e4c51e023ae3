"""The lists under envs/ as they are read, and the programs they name as they are found."""

import json
import os
from pathlib import Path

import pytest

from burstlab.doctor import environments, versions
from burstlab.doctor.capabilities import environment_problem
from burstlab.doctor.environments import Command, Environment

NOWHERE = "burstlab-has-no-such-command"


def test_lists_are_read_without_their_comments(tmp_path: Path) -> None:
    (tmp_path / "montage").mkdir()
    (tmp_path / "montage" / "debian.txt").write_text("# why\n\nmontage   # what\nruby\n")
    (tmp_path / "montage" / "commands.txt").write_text("mAdd montage\nruby ruby --version\n")
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "requirements.lock").write_text("")
    assert environments.load(tmp_path) == {
        "montage": Environment(
            "montage",
            ("montage", "ruby"),
            (Command("mAdd", "montage"), Command("ruby", "ruby", ("--version",))),
            None,
        )
    }


def test_a_workload_has_the_environment_of_its_name_or_the_one_it_names(tmp_path: Path) -> None:
    (tmp_path / "workflows/ddp").mkdir(parents=True)
    (tmp_path / "workflows/ddp/environment.txt").write_text("torch\n")
    assert environments.of_workload(tmp_path, "ddp") == "torch"
    assert environments.of_workload(tmp_path, "mxnet") == "mxnet"


def test_installed_packages_are_known_and_others_are_not() -> None:
    assert environments.installed_packages(["dpkg", NOWHERE]) == {"dpkg"}


def test_daemons_are_found_though_users_have_them_not_on_their_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert environments.find_command(NOWHERE) is None
    (tmp_path / NOWHERE).write_text("#!/bin/sh\n")
    (tmp_path / NOWHERE).chmod(0o755)
    monkeypatch.setattr(environments, "SYSTEM_DIRECTORIES", (str(tmp_path),))
    assert environments.find_command(NOWHERE) == str(tmp_path / NOWHERE)


def test_missing_command_is_the_problem() -> None:
    lacking = Environment("x", (), (Command("sh", "dash"), Command(NOWHERE, "")), None)
    assert environment_problem(lacking) == f"missing: {NOWHERE}"


def test_packages_decide_where_no_command_is_listed() -> None:
    assert environment_problem(Environment("x", ("dpkg",), (), None)) is None
    lacking = Environment("x", ("dpkg", NOWHERE), (), None)
    assert environment_problem(lacking) == f"missing packages: {NOWHERE}"


def test_versions_come_from_the_package_or_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of the same name from elsewhere must not get the package's version."""
    for name, said in (("dpkg", "impostor 7"), ("mute", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho; echo {said}\n")
        (tmp_path / name).chmod(0o755)
    commands = (Command("dpkg-query", "dpkg"), Command("mute", ""))
    environment = Environment("x", (), commands, None)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")
    versions.write(environment, tmp_path / "deep" / "x.json")
    described = json.loads((tmp_path / "deep" / "x.json").read_text())["commands"]
    assert described["dpkg-query"]["version_from"] == "package dpkg"
    assert described["dpkg-query"]["version"].startswith("1.")
    assert described["mute"]["version"] is None
    assert len(described["mute"]["sha256"]) == 64

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    impostor = Environment("x", (), (Command("dpkg", "dpkg", ("--version",)),), None)
    versions.write(impostor, tmp_path / "x.json")
    described = json.loads((tmp_path / "x.json").read_text())["commands"]["dpkg"]
    assert described["version_from"] == "the program"
    assert described["version"] == "impostor 7"
