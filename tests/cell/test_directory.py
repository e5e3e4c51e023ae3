"""A cell's directory is one cell's alone, on whatever hosts; a dead one's is taken over."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from burstlab import celldir
from burstlab.celldir import CellDirectory
from burstlab.errors import BurstlabError, ConfigurationError
from tests.polling import until

from .running import Place

ELSEWHERE = ["unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def elsewhere(place: Place, command: list[str]) -> "subprocess.Popen[str]":
    """``command`` on another host, as far as anybody can see who meets its file."""
    script = 'hostname elsewhere && exec "$@"'
    return subprocess.Popen(
        [*ELSEWHERE, "sh", "-c", script, "sh", *command],
        env={**place.environment(), "BURSTLAB_STATE": str(place.root / "other")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.requires("root", "netns")
def test_a_cell_of_another_host_is_seen_and_when_it_is_dead_followed(place: Place) -> None:
    first = elsewhere(place, place.command("--storage", "nodelocal", run=["sleep", "60"]))
    until(lambda: (place.cell / "workload.log").exists(), "the first runs")
    second = place.run("--storage", "nodelocal", run=["true"])
    assert second.returncode == 120
    assert "runs in it on elsewhere, since" in second.stderr.splitlines()[-1]
    first.kill()
    first.communicate(timeout=60)
    third = place.run("--storage", "nodelocal", run=["true"])
    assert third.returncode == 0, third.stderr
    assert not (place.cell / celldir.NAME).exists()
    reaping = elsewhere(place, [sys.executable, "-m", "burstlab", "reap"])
    assert "1 stale" in reaping.communicate(timeout=60)[0]


def test_of_many_at_once_one_takes_it(tmp_path: Path) -> None:
    directories = [CellDirectory(tmp_path / "cell", f"cell{number}") for number in range(8)]
    taken, start = [], threading.Barrier(len(directories))

    def take(directory: CellDirectory) -> None:
        start.wait()
        try:
            directory.take()
        except ConfigurationError:
            return
        taken.append(directory)

    threads = [threading.Thread(target=take, args=(directory,)) for directory in directories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    taken[0].require_ours()
    taken[0].release()
    assert not any((tmp_path / "cell").iterdir())


def test_who_lost_its_directory_writes_no_record(tmp_path: Path) -> None:
    """This host could not reach the file system for a while, and was taken for dead."""
    slow = CellDirectory(tmp_path, "slow")
    slow.take()
    (tmp_path / celldir.NAME).unlink()
    quick = CellDirectory(tmp_path, "quick")
    quick.take()
    with pytest.raises(BurstlabError, match="cell quick took it"):
        slow.require_ours()
    slow.release()
    quick.require_ours()
    quick.release()


def test_a_dead_process_of_this_host_is_followed_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = f"from burstlab.celldir import *; CellDirectory(Path({str(tmp_path)!r}), 'a').take()"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert (tmp_path / celldir.NAME).exists()
    after = CellDirectory(tmp_path, "b")
    after.take()
    after.release()
    assert capsys.readouterr().err == "", "nothing had to be watched"
