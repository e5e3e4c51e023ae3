"""Links to the profiles: found by Snakemake, repaired when ours, never in anybody's way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.setup import profiles


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    return tmp_path / "configuration" / "snakemake"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path / "checkout")


def make_root(root: Path) -> Path:
    for name in ("default", "laptop-of-a-test"):
        (root / "profiles" / name).mkdir(parents=True)
        (root / "profiles" / name / "config.yaml").write_text("cores: 1\n")
    return root


@pytest.mark.slow
def test_snakemake_finds_a_linked_profile(configuration: Path, root: Path) -> None:
    assert profiles.link_all(root)
    (root / "Snakefile").write_text("rule all:\n    shell: 'true'\n")
    command = [sys.executable, "-m", "snakemake", "--profile", "laptop-of-a-test"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(root)}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_second_time_does_nothing(configuration: Path, root: Path) -> None:
    assert profiles.link_all(root)
    assert not profiles.link_all(root)


def test_the_workflows_own_profile_is_not_linked(configuration: Path, root: Path) -> None:
    profiles.link_all(root)
    assert not (configuration / "default").is_symlink()


@pytest.mark.parametrize("kind", ["directory", "link", "dangling link"])
def test_what_is_not_ours_stays(
    kind: str, configuration: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration.mkdir(parents=True)
    theirs = configuration / "laptop-of-a-test"
    if kind == "directory":
        theirs.mkdir()
    else:
        theirs.symlink_to(root if kind == "link" else root / "nowhere")
    before = theirs.lstat()
    assert not profiles.link_all(root)
    assert theirs.lstat() == before
    told = capsys.readouterr().out
    assert str(theirs) in told
    assert "snakemake --profile profiles/laptop-of-a-test" in told


def test_our_link_to_a_checkout_that_moved_is_repaired(
    configuration: Path, root: Path, tmp_path: Path
) -> None:
    profiles.link_all(root)
    moved = root.rename(tmp_path / "moved")
    assert profiles.link_all(moved)
    link = configuration / "laptop-of-a-test"
    assert link.readlink() == moved / "profiles" / "laptop-of-a-test"


def test_link_of_another_checkout_that_is_there_stays(
    configuration: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles.link_all(root)
    other = make_root(tmp_path / "other")
    assert not profiles.link_all(other)
    link = configuration / "laptop-of-a-test"
    assert link.readlink() == root / "profiles" / "laptop-of-a-test"
    assert f"leads to {link.readlink()} and was left alone" in capsys.readouterr().out


def test_unlink_takes_ours_only(configuration: Path, root: Path) -> None:
    profiles.link_all(root)
    link, theirs = configuration / "laptop-of-a-test", configuration / "theirs"
    theirs.symlink_to(root / "profiles" / "default")
    profiles.unlink_all(root)
    assert not link.is_symlink()
    assert theirs.is_symlink()
