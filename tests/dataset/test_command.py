"""`burstlab dataset`, as a user meets it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from burstlab.dataset.manifest import read_manifest, verify
from tests.dataset.conftest import SMALL

Command = Callable[..., subprocess.CompletedProcess[str]]
MANIFEST = "results/datasets/small/manifest.json"


@pytest.fixture(autouse=True)
def declared(tmp_path: Path) -> None:
    """A checkout with one small data set."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config/datasets.yaml").write_text(
        f"small: {{kind: 2mass, synthetic: {SMALL.model_dump_json()}}}\n"
        "lost: {kind: 2mass, source: given}\n"
    )


def test_make_verify_list(burstlab: Command, tmp_path: Path) -> None:
    assert (
        "small          2mass    not made yet; would be: synthetic"
        in burstlab("dataset", "list").stdout
    )
    made = burstlab("dataset", "make", "small")
    assert made.returncode == 0 and made.stderr == ""
    assert made.stdout.startswith(
        f"{tmp_path}/{MANIFEST}: synthetic, 7 files, 0.2 MB in {tmp_path}"
    )
    verified = burstlab("dataset", "verify", MANIFEST, "--full")
    assert (verified.returncode, verified.stderr) == (0, "")
    assert "7 files as they were" in verified.stdout
    lines = burstlab("dataset", "list").stdout.splitlines()
    assert lines[0].startswith("small          2mass    synthetic, 7 files in ")
    assert lines[1].startswith("lost           2mass    source: given, but no directory")


def test_given_tiles_come_before_synthetic_ones(
    burstlab: Command, small_tiles: Path, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    shutil.copytree(small_tiles, given)
    (given / "truth.json").unlink()
    made = burstlab("dataset", "make", "small", "--output", "m.json", BURSTLAB_2MASS="given")
    assert f"m.json: given, 6 files, 0.2 MB in {given}" in made.stdout
    next(given.glob("*.fits")).unlink()
    made = burstlab("dataset", "verify", "m.json")
    assert made.returncode == 120
    assert made.stdout.count("missing") == 1 and "is not what the manifest says" in made.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["make", "smal"], "no data set 'smal', did you mean 'small'? (allowed: small, lost)"),
        (["make", "lost"], "set BURSTLAB_2MASS or `directory`"),
        (["verify", "nothing.json"], "nothing.json: No such file or directory: make it with"),
    ],
)
def test_what_is_wrong_is_one_line(burstlab: Command, words: list[str], told: str) -> None:
    ended = burstlab("dataset", *words)
    assert ended.returncode == 120 and ended.stdout == ""
    assert told in ended.stderr and ended.stderr.count("\n") == 1


def test_a_bar_is_drawn_only_on_a_terminal(tmp_path: Path) -> None:
    reader, writer = os.openpty()
    command = [sys.executable, "-m", "burstlab", "dataset", "make", "small"]
    ended = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=writer, timeout=60)
    os.close(writer)
    drawn = b""
    while block := _read(reader):
        drawn += block
    os.close(reader)
    assert ended.returncode == 0 and b"\x1b" not in ended.stdout
    assert b"synthetic tiles" in drawn and b"6/6" in drawn and b"checksums" in drawn


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how a terminal says that its other end is closed
        return b""


@pytest.mark.parametrize("moment", [".synthetic.partial/*.fits", "synthetic"])
def test_killed_while_it_makes_nothing_looks_complete(
    burstlab: Command, tmp_path: Path, small_tiles: Path, moment: str
) -> None:
    folder = tmp_path / "results/datasets/small"
    child = subprocess.Popen(
        [sys.executable, "-m", "burstlab", "dataset", "make", "small"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not [*folder.glob(moment)] and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    manifest = tmp_path / MANIFEST
    if manifest.exists():
        assert verify(read_manifest(manifest), full=True) == []
    if (folder / "synthetic").exists():
        assert _contents(folder / "synthetic") == _contents(small_tiles)
    assert burstlab("dataset", "make", "small").returncode == 0
    assert _contents(folder / "synthetic") == _contents(small_tiles)
    assert {path.name for path in folder.iterdir() if "manifest" not in path.name} == {"synthetic"}


def _contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}
