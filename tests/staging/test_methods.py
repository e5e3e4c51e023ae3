"""Every method brings the same bytes to several hosts."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from burstlab.request import STAGING_METHODS as METHODS
from burstlab.staging.methods import children_of
from tests.staging.conftest import DEADLINE_S, Stage

pytestmark = pytest.mark.requires("burstio", "staging")

NODES = ("--virtual", "--nodes", "3")
WHOLE = [method for method in METHODS if method != "shard"]


@pytest.mark.parametrize("method", WHOLE)
def test_every_host_has_everything(stage: Stage, method: str) -> None:
    done = stage.run(*NODES, "--method", method)
    assert done.returncode == 0, done.stderr
    assert "60 files of 60" in done.stdout
    assert "on 3 hosts" in done.stdout
    for node in ("node01", "node02", "node03"):
        assert stage.found(stage.target / node) == stage.files
    assert stage.partials() == []


def test_shards_are_disjoint_and_complete(stage: Stage) -> None:
    assert stage.run(*NODES, "--method", "shard").returncode == 0
    parts = [stage.found(stage.target / node) for node in ("node01", "node02", "node03")]
    assert [len(part) for part in parts] == [20, 20, 20]
    assert parts[0] | parts[1] | parts[2] == stage.files


@pytest.mark.parametrize("method", METHODS)
def test_first_bad_file_is_named_by_every_method(stage: Stage, method: str) -> None:
    spoilt = stage.source / "d3/e1/f3"
    spoilt.write_bytes(bytes(70_000))
    done = stage.run(*NODES, "--method", method)
    assert done.returncode == 123
    assert "d3/e1/f3: changed" in done.stderr
    for node in ("node01", "node02", "node03"):
        assert stage.found(stage.target / node).items() <= stage.files.items()


def test_archive_is_made_once_and_anew_for_other_files(stage: Stage) -> None:
    first = stage.run("--method", "archive")
    assert "  pack " in first.stdout
    again = stage.run("--method", "archive", "--source", "/nowhere")
    assert "is not empty; this method does not go on with a staging" in again.stderr
    stage.target.rename(stage.target.with_name("other"))
    again = stage.run(*NODES, "--method", "archive", "--source", "/nowhere")
    assert again.returncode == 0, again.stderr
    assert "  pack " not in again.stdout
    stage.target.rename(stage.target.with_name("another"))
    stage.make(61)
    assert "  pack " in stage.run("--method", "archive").stdout
    assert stage.found() == stage.files


def test_tree_goes_on_where_hosts_have_some_files(stage: Stage) -> None:
    assert stage.run(*NODES, "--method", "tree").returncode == 0
    (stage.target / "node03/d3/e1/f3").unlink()
    (stage.target / "node01/d0/e0/f0").write_bytes(b"torn")
    done = stage.run(*NODES, "--method", "tree")
    assert "(178 were there)" in done.stdout
    for node in ("node01", "node02", "node03"):
        assert stage.found(stage.target / node) == stage.files


@pytest.mark.requires("root")
def test_virtual_nodes_connect_to_this_machine_whoever_has_their_names(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n240.0.0.1 node01 node02 node03\n")
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    command = stage.command(*NODES, "--method", "tree")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, tmp_path / "hosts", *command],
        env=stage.environment(), capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "60 files of 60" in done.stdout


def test_every_host_of_the_tree_but_the_first_has_one_parent() -> None:
    hosts = "abcdefghi"
    assert sorted(child for host in hosts for child in children_of(hosts, host)) == list(hosts[1:])


@pytest.mark.slow
def test_killed_tree_leaves_no_torn_file(stage: Stage) -> None:
    stage.make(300)
    targets = [stage.target / node for node in ("node01", "node02", "node03")]
    for _ in range(8):
        still_ran = stage.killed_at(30, *NODES, "--method", "tree")
        found = [stage.found(target) for target in targets]
        assert all(one.items() <= stage.files.items() for one in found)
        if still_ran and any(len(one) < 300 for one in found):
            break
        shutil.rmtree(stage.target)
    else:
        pytest.fail("each had ended before it was killed")
    assert stage.run(*NODES, "--method", "tree").returncode == 0
    assert [stage.found(target) for target in targets] == [stage.files] * 3


def with_cp(directory: Path, script: str) -> str:
    """A PATH with another cp, which does as the script says."""
    directory.mkdir()
    (directory / "cp").write_text(f"#!/bin/sh\n{script}\n")
    (directory / "cp").chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"


def test_the_papers_way_has_eight_copies_at_once(tmp_path: Path) -> None:
    """Each waits until eight have begun."""
    stage = Stage(tmp_path)
    stage.make(20, directories=10)
    (begun := tmp_path / "begun").mkdir()
    wait = f"""\
touch {begun}/$$
tries=0
until [ "$(ls {begun} | wc -l)" -ge 8 ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || {{ echo not eight at once >&2; exit 1; }}
    sleep 0.01
done
exec {shutil.which("cp")} "$@\""""
    done = stage.run("--method", "paper", PATH=with_cp(tmp_path / "bin", wait))
    assert done.returncode == 0, done.stderr
    assert stage.found() == stage.files


def test_program_that_fails_is_told_with_its_last_words(stage: Stage, tmp_path: Path) -> None:
    sad = with_cp(tmp_path / "bin", "echo cp: this disk is sad >&2; exit 1")
    done = stage.run("--method", "paper", PATH=sad)
    assert done.returncode == 123
    assert "parallel ended with status" in done.stderr
    assert "cp: this disk is sad" in done.stderr
    assert stage.found() == {}


def test_usage_lists_every_method() -> None:
    import sys

    command = [sys.executable, "-m", "burstlab", "stage", "--help"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert all(f"{method}: " in told for method in METHODS)
