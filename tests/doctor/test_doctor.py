"""`burstlab doctor` on this machine and on checkouts that lack something."""

import io
import json
import re
import shutil
from pathlib import Path

import pytest

from burstlab.cli import doctor, main
from burstlab.doctor import environments, findings, table
from burstlab.doctor.findings import Finding, State

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "burstlab-has-no-such-command"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with this one's configuration, where an environment can be spoilt."""
    root = tmp_path / "checkout"
    for name in ("config", "envs", "rules", "workflows", "analysis", "profiles"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(doctor, "ROOT", root)
    return root


def by_subject(found: list[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in found}


def test_make_demo_sets_up_what_its_workloads_and_storages_need() -> None:
    needed = findings.demo_needs(ROOT)
    assert {"montage", "pfs", "nodelocal", "gfarm"} <= needed
    (line,) = re.findall(r"^demo: PARTS \?= (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert line.split() == [name for name in environments.load(ROOT / "envs") if name in needed]


def test_missing_program_of_the_demo_is_named_and_is_the_exit_status(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "envs/montage/commands.txt").write_text(f"{NOWHERE} montage\n")
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert f"no workload montage missing: {NOWHERE}" in " ".join(told.split())
    assert "apt-get install --no-install-recommends montage" in told
    assert told.splitlines()[-1].startswith("The demo can't run here:")
    assert "workload montage" in told.splitlines()[-1]


def test_missing_program_that_the_demo_does_not_use_is_no_failure(checkout: Path) -> None:
    (checkout / "envs" / "ssh" / "commands.txt").write_text(f"{NOWHERE} openssh-client\n")
    found = findings.examine(checkout)
    assert by_subject(found)["programs ssh"].state is State.MISSING
    assert "programs ssh" not in table.lacking(found)


def test_what_is_optional_is_limited_and_asked_for_by_name(checkout: Path) -> None:
    (checkout / "envs" / "torch" / "commands.txt").write_text(f"{NOWHERE} openmpi-bin\n")
    found = by_subject(findings.examine(checkout))["workload ddp"]
    assert (found.state, found.detail) == (
        State.LIMITED,
        f"missing: {NOWHERE}; its wheels take 5 GB",
    )
    assert found.remedy.startswith("make setup PARTS=torch as root; or apt-get install ")


def test_a_burst_buffer_is_only_there_where_its_site_has_it(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (checkout / "config/sites").glob("*.yaml"):
        path.write_text(path.read_text().replace("path: /beeond", "path: $NO_SUCH_VARIABLE"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.delenv("SGE_BEEONDDIR", raising=False)
    found = by_subject(findings.examine(checkout))
    assert found["storage beeond"].state is found["storage provided"].state is State.MISSING
    assert "the command beeond is missing" in found["storage beeond"].detail
    assert "no abci2's $SGE_BEEONDDIR" in found["storage provided"].detail
    assert not {"storage beeond", "storage provided"} & set(table.lacking(list(found.values())))
    (tmp_path / "bin/beeond").touch(0o755)
    monkeypatch.setenv("SGE_BEEONDDIR", str(tmp_path))
    found = by_subject(findings.examine(checkout))
    assert found["storage beeond"].state is found["storage provided"].state is State.READY


def test_environment_unlike_its_lock_is_told(checkout: Path) -> None:
    lock = checkout / "envs" / "burstlab" / "requirements.lock"
    lock.write_text("rich==0.0.1 ; sys_platform == 'linux'\nwinrich==1 ; os_name == 'nt'\n")
    found = by_subject(findings.examine(checkout))["python"]
    assert found.state is State.MISSING
    assert "rich" in found.detail and "not 0.0.1" in found.detail
    assert "winrich" not in found.detail
    assert found.remedy == "make setup"


def test_profiles_are_told_apart(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    directory = tmp_path / "snakemake"
    directory.mkdir()
    (directory / "local").symlink_to(checkout / "profiles" / "local")
    (directory / "abci").mkdir()
    found = by_subject(findings.examine(checkout))
    assert found["--profile local"].state is State.READY
    assert found["--profile abci"].state is State.LIMITED
    assert found["--profile abci"].detail == f"{directory / 'abci'} is not a link"
    assert "--profile default" not in found


def test_terminal_gets_a_table_with_the_same_words() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    told = [Finding("fuse", State.MISSING, "no [b]/dev/fuse[/b]", "load it", needed=True)]
    plain, terminal = io.StringIO(), Terminal()
    table.show(told, plain)
    table.show(told, terminal)
    for word in ("fuse", "no", "[b]/dev/fuse[/b]", "load it", "The demo can't run here: fuse"):
        assert word in plain.getvalue()
        assert word in terminal.getvalue()


def test_one_environment_writes_versions_or_nothing(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.json"
    flags = ["doctor", "--environment", "ssh", "--output", str(output)]
    (checkout / "envs" / "ssh" / "commands.txt").write_text("sh dash\n")
    assert main(flags) == 0
    assert json.loads(output.read_text())["commands"]["sh"]["version_from"] == "package dash"
    output.unlink()
    (checkout / "envs" / "ssh" / "commands.txt").write_text(f"sh dash\n{NOWHERE} some-package\n")
    assert main(flags) == 1
    assert not output.exists()
    assert capsys.readouterr().err == f"ssh: {NOWHERE} is missing (Debian package some-package)\n"


def test_unknown_environment_is_a_configuration_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--environment", "montag"]) == 120
    assert "(there are: " in capsys.readouterr().err
