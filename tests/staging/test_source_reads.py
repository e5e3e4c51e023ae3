"""How often each method opens a file on the parallel file system, with three hosts to fill.

Counted by strace at the emulator: bytes would tell nothing, because virtual nodes have one kernel,
and what one has read another finds in the page cache.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.pfs.emulator import FREE, Emulator, emulated
from tests.polling import until
from tests.staging.conftest import Stage

pytestmark = pytest.mark.requires("burstio", "staging", "fuse", "trace", "root")

OPENED = re.compile(r'openat\([^"]*"(f[0-9]+)", (?!.*O_PATH)')


@pytest.mark.slow
@pytest.mark.parametrize(("method", "times"), [("tree", 1), ("shard", 1), ("copy", 3)])
def test_the_source_is_read_as_often_as_is_told(
    stage: Stage, tmp_path: Path, method: str, times: int
) -> None:
    with (
        emulated(tmp_path / "pfs", *FREE, backing=stage.source) as pfs,
        opens_of(pfs, tmp_path / "strace") as opens,
    ):
        flags = ("--virtual", "--nodes", "3", "--method", method, "--source", pfs.work)
        done = stage.run(*flags)
    assert done.returncode == 0, done.stderr
    assert opens == {Path(path).name: times for path in stage.files}


@contextmanager
def opens_of(pfs: Emulator, log: Path) -> Iterator[Counter[str]]:
    """How often the emulator opens each file of its export, by name, once this has ended."""
    command = ["strace", "-f", "-e", "trace=openat", "-o", log, "-p", str(pfs.process.pid)]
    said, opens = log.with_suffix(".said"), Counter[str]()
    with said.open("wb") as output:
        strace = subprocess.Popen(command, stderr=output)
    try:
        until(lambda: "attached" in said.read_text() or strace.poll() is not None, "strace")
        assert strace.poll() is None, said.read_text()
        yield opens
    finally:
        strace.terminate()
        strace.wait(60)
    opens.update(found[1] for line in log.open() if (found := OPENED.search(line)))
