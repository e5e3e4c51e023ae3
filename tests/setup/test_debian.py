"""Debian packages: what is missing is found, told, and installed with few calls of apt-get."""

import os
from pathlib import Path

import pytest

from burstlab.doctor import environments
from tools.setup import debian, services
from tools.setup.failure import SetupError, UnknownPart

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "burstlab-has-no-such-package"

# The facts set-up relies on, of apt 2.6 and dpkg 1.21: without lists apt-get install says "Unable
# to locate package" and ends with 100; update brings them; after a dpkg that was killed it says to
# run `dpkg --configure -a`.
APT_GET = """#!/bin/sh
echo "apt-get $*" >> "$CALLS"
test -x "$POLICY" && echo policy >> "$CALLS"
case "$*" in
    *update*) : > "$LISTS" ;;
    *) test -e "$LISTS" && exit 0
       echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'"
       echo 'E: Unable to locate package'; exit 100 ;;
esac
"""


@pytest.fixture
def envs(tmp_path: Path) -> Path:
    """Three environments: two whose package is nowhere, one of them with its command found."""
    for name in ("setup", "absent", "elsewhere", "here"):
        (tmp_path / "envs" / name).mkdir(parents=True)
        (tmp_path / "envs" / name / "debian.txt").write_text(f"# why\n{NOWHERE}-{name}  # what\n")
    (tmp_path / "envs/absent/commands.txt").write_text(f"{NOWHERE} {NOWHERE}\n")
    (tmp_path / "envs/elsewhere/commands.txt").write_text(f"sh {NOWHERE}\n")
    (tmp_path / "envs/here/debian.txt").write_text("dpkg\n")
    return tmp_path / "envs"


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "can_install", lambda: False)


def test_packages_that_are_there_are_not_missing(envs: Path) -> None:
    assert "here" not in debian.missing(debian.select(envs, None))


def test_programs_from_elsewhere_do_for_who_cannot_install(envs: Path, as_user: None) -> None:
    assert debian.missing(debian.select(envs, None)) == {"absent": (f"{NOWHERE}-absent",)}


def test_root_gets_the_packages_all_the_same(envs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command may be there and a library of the same list not."""
    monkeypatch.setattr(debian, "can_install", lambda: True)
    assert set(debian.missing(debian.select(envs, None))) == {"absent", "elsewhere"}


def test_parts_narrow_and_are_checked(envs: Path) -> None:
    assert list(debian.select(envs, "here absent")) == ["here", "absent"]
    assert list(debian.select(envs, "")) == []
    with pytest.raises(UnknownPart, match=r"no 'abent' in envs/ .there are: absent elsewhere here"):
        debian.select(envs, "abent")


def test_message_has_the_three_ways_and_how_to_go_on(envs: Path, as_user: None) -> None:
    (envs / "absent" / "conda.yaml").write_text("name: absent\n")
    wanted = debian.select(envs, None)
    told = str(debian.ways_to_get(wanted, debian.missing(wanted)))
    assert f"apt-get install --no-install-recommends {NOWHERE}-absent\n" in told
    assert "conda env update --file envs/absent/conda.yaml\n" in told
    assert f"puts these on PATH: {NOWHERE}\n" in told
    assert 'PARTS="elsewhere here"' in told


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get of our own first on PATH, and the file that tells how it was called."""
    programs = {"apt-get": APT_GET, "dpkg": '#!/bin/sh\necho "dpkg $*" >> "$CALLS"\n'}
    (tmp_path / "bin").mkdir()
    for name, program in programs.items():
        (tmp_path / "bin" / name).write_text(program)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("LISTS", str(tmp_path / "lists"))
    monkeypatch.setenv("POLICY", str(tmp_path / "policy-rc.d"))
    monkeypatch.setattr(services, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(debian, "can_install", lambda: True)
    return tmp_path / "calls"


def test_lists_are_fetched_only_when_needed(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "lists").touch()
    assert debian.install({"one": ("a", "b"), "two": ("b", "c")}, tmp_path)
    (line, _) = calls.read_text().splitlines()
    assert line.endswith("install --yes --no-install-recommends a b c")


def test_fresh_machine_and_interrupted_dpkg_are_put_right(calls: Path, tmp_path: Path) -> None:
    assert debian.install({"one": ("a",)}, tmp_path)
    told = [line for line in calls.read_text().splitlines() if line != "policy"]
    assert [line.split()[0] for line in told] == ["apt-get", "dpkg", "apt-get", "apt-get"]
    assert "update" in told[2]


def test_failure_shows_what_apt_said(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LISTS", str(tmp_path / "no" / "lists"))
    with pytest.raises(SetupError, match=r"setup.log\):\n(?s:.*)Unable to locate package"):
        debian.install({"one": ("a",)}, tmp_path)


def test_no_daemon_is_started_and_the_policy_goes_away(calls: Path, tmp_path: Path) -> None:
    debian.install({"one": ("a",)}, tmp_path)
    assert "policy" in calls.read_text().splitlines()
    assert not services.POLICY.exists()


def test_policy_of_a_killed_set_up_is_removed(calls: Path) -> None:
    services.POLICY.write_text(f"#!/bin/sh\n{services.MARK}4194305\nexit 101\n")  # above pid_max
    services.allow_again()
    assert not services.POLICY.exists()


def test_policy_of_somebody_else_stays(calls: Path, tmp_path: Path) -> None:
    services.POLICY.write_text("#!/bin/sh\nexit 101\n")
    services.allow_again()
    debian.install({"one": ("a",)}, tmp_path)
    assert services.POLICY.read_text() == "#!/bin/sh\nexit 101\n"


@pytest.mark.parametrize("name", sorted(environments.load(ROOT / "envs")))
def test_lists_of_the_checkout_agree(name: str) -> None:
    """A command's package is on the list beside it."""
    environment = environments.load(ROOT / "envs")[name]
    assert {command.package for command in environment.commands} <= set(environment.packages)


def test_what_is_optional_is_set_up_only_by_name() -> None:
    assert "torch" not in debian.select(ROOT / "envs", None)
    assert list(debian.select(ROOT / "envs", "torch")) == ["torch"]
