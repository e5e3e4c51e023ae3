"""A parallel file system that stalls: who is told what, who may end, and what is left."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab.pipelines import Mode, Options, PipelineError, Stalled, open_pipeline
from tests.pfs.emulator import FREE, Emulator, emulated
from tests.pipelines.small_set import COUNT, Numbered, make
from tests.polling import until

pytestmark = pytest.mark.requires("burstio", "fuse")

PROGRAM = """
import sys
from pathlib import Path
from burstlab.pipelines import Options, Stalled, open_pipeline
from tests.pipelines.small_set import COUNT, Numbered
mode, root, local, limit, *agent = sys.argv[1:]
files = Numbered(root, [f"{index % 5}/{index}" for index in range(COUNT)])
agent = Path(agent[0]) if agent else None
options = Options(local=Path(local), time_limit_s=float(limit), agent=agent)
with open_pipeline(mode, files, options) as pipeline:
    pipeline.plan([[1, 2], [3, 4]])
    pipeline.take()
"""


@pytest.fixture
def pfs(tmp_path: Path) -> Iterator[Emulator]:
    backing = tmp_path / "pfs" / "backing"
    make(backing)
    with emulated(tmp_path / "pfs", *FREE, backing=backing) as running:
        yield running


def files_of(pfs: Emulator) -> Numbered:
    return Numbered(pfs.work, [f"{index % 5}/{index}" for index in range(COUNT)])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "paper3"])
def test_a_program_ends_while_the_source_stalls(mode: Mode, tmp_path: Path, pfs: Emulator) -> None:
    pfs.stall()
    local, said = tmp_path / "local", tmp_path / "said"
    command = [sys.executable, "-c", PROGRAM, mode, pfs.work, local, "1"]
    with said.open("wb") as output:  # what hangs in the kernel holds it open
        program = subprocess.Popen(command, stderr=output)
    assert program.wait(60) == 1
    told = said.read_text().splitlines()[-1]
    assert f"Stalled: {pfs.work}/1/1: " in told
    held = re.findall(r"copy process ([0-9]+) is at (\S+?)(?=;|$)", told)
    if mode == "paper3":
        assert {path for _, path in held} == {f"{pfs.work}/1/1", f"{pfs.work}/3/3"}
    assert not list(local.glob(".copying.*"))
    pfs.go_on()
    until(lambda: not any(Path("/proc", pid).exists() for pid, _ in held), "the copiers' end")
    assert not list(local.glob(".copying.*"))


@pytest.mark.slow
def test_lazy_names_the_file_while_the_source_stalls(tmp_path: Path, pfs: Emulator) -> None:
    pfs.stall()
    said = tmp_path / "said"
    command = [sys.executable, "-c", PROGRAM, "lazy", pfs.work, tmp_path / "local", "1"]
    with said.open("wb") as output:
        program = subprocess.Popen(command, stderr=output)
    try:
        until(lambda: "Stalled: " in said.read_text(), "the reason")
    finally:
        pfs.go_on()  # threads of its own hang in the kernel, and it can't end without them
    assert program.wait(60) == 1
    assert f"Stalled: {pfs.work}/1/1: the source has not given it" in said.read_text()


@pytest.mark.slow
def test_who_has_an_agent_ends_while_the_source_stalls(tmp_path: Path, pfs: Emulator) -> None:
    (tmp_path / "list").write_text("".join(f"{name}\n" for name in files_of(pfs).files))
    socket = tmp_path / "agent" / "socket"
    command = [sys.executable, "-m", "burstio.agent", "--while-stdin", "--socket", socket]
    command += ["--root", pfs.work, "--files", tmp_path / "list", "--time-limit-s", "0.5"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdout and agent.stdout.readline() == b"ready\n"
        command = [sys.executable, "-c", PROGRAM, "lazy", pfs.work, tmp_path, "2", socket]
        pfs.stall()
        try:
            program = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60)
        finally:
            pfs.go_on()
    assert program.returncode == 1
    assert f"Stalled: {pfs.work}/1/1: the source has not given it" in program.stderr
    assert agent.returncode == 0, "it ends with its standard input"


def test_a_stall_that_is_over_is_forgotten(tmp_path: Path, pfs: Emulator) -> None:
    pfs.stall()
    options = Options(local=tmp_path / "local", time_limit_s=0.3, copiers=1)
    with open_pipeline("paper3", files_of(pfs), options) as pipeline:
        pipeline.plan([[1, 2], [3]])
        with pytest.raises(Stalled, match=f"copy process [0-9]+ is at {pfs.work}/1/1$"):
            pipeline.take()
        pfs.go_on()
        assert until(lambda: _taken(pipeline), "the minibatch") == [1, 2]


def _taken(pipeline: object) -> list[int] | None:
    try:
        return list(pipeline.take().indices)  # type: ignore[attr-defined]
    except Stalled:
        return None


@pytest.mark.slow
def test_a_copy_process_killed_in_a_stall_is_named(tmp_path: Path, pfs: Emulator) -> None:
    options = Options(local=tmp_path / "local", time_limit_s=60.0)
    with open_pipeline("paper3", files_of(pfs), options) as pipeline:
        pipeline.plan([[0]])
        pipeline.take()
        pfs.stall()
        pipeline.plan([[index] for index in range(1, COUNT)])
        copiers = [p.pid for p in multiprocessing.active_children() if p.name == "copy"]
        waiting = Path("/proc", str(copiers[0]), "wchan")
        until(lambda: "request_wait" in waiting.read_text(), "the copier's wait")
        os.kill(copiers[0], signal.SIGKILL)
        pfs.go_on()
        with pytest.raises(PipelineError, match=f"copy process {copiers[0]} ended with -9"):
            for _ in range(1, COUNT):
                pipeline.take()
    assert not list((tmp_path / "local").glob(".copying.*"))
    assert not multiprocessing.active_children()
