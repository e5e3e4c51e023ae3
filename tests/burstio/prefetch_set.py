"""A small data set for the tests of prefetching, whose bytes tell which sample they are."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

COUNT = 200

# The cache in segments, and with a file of its own for every sample.
in_both_layouts = pytest.mark.parametrize("segments", [True, False])


def content(index: int) -> bytes:
    """What file ``index`` holds: no two have the same, nor the same length."""
    return index.to_bytes(4, "little") * (250 + 3 * index)


def make(root: Path, count: int = COUNT) -> list[str]:
    """Write the files; returns their names."""
    root.mkdir()
    files = [f"{index % 7}/{index}" for index in range(count)]
    for part in range(7):
        (root / str(part)).mkdir()
    for index, name in enumerate(files):
        (root / name).write_bytes(content(index))
    return files


def held_by(pid: int | str = "self") -> tuple[list[str], int]:
    """Files open in a process, and its threads."""
    where = Path(f"/proc/{pid}")
    links = []
    for descriptor in (where / "fd").iterdir():
        try:
            links.append(str(descriptor.readlink()))
        except FileNotFoundError:
            continue  # that of this very loop
    return sorted(links), len(list((where / "task").iterdir()))


@contextmanager
def ctrl_c_soon() -> Iterator[None]:
    """What is within waits for ever, and must be ended by SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@contextmanager
def agent(
    directory: Path, files: list[str], *options: object
) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A ready agent's socket and process; it is ended at its standard input's end."""
    with starting(directory, files, *options) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield socket_of(directory), process


def socket_of(directory: Path) -> Path:
    return directory / "agent" / "socket"


@contextmanager
def starting(
    directory: Path, files: list[str], *options: object
) -> Iterator[subprocess.Popen[str]]:
    """An agent that may not be ready yet."""
    (directory / "files").write_text("".join(f"{name}\n" for name in files))
    command: list[object] = [sys.executable, "-m", "burstio.agent", "--while-stdin"]
    command += ["--socket", socket_of(directory)]
    command += ["--root", directory / "data", "--files", directory / "files", *options]
    with subprocess.Popen(
        [os.fspath(part) if isinstance(part, Path) else str(part) for part in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait(30)
