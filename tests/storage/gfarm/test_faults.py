"""What may die or fill up under a cell: it is told, nothing is accepted, nothing stays."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab import lease
from burstlab.errors import BurstlabError
from burstlab.lease import MARKER
from burstlab.mounts import mounted_at
from burstlab.process import Identity, members
from tests.polling import until
from tests.storage.gfarm.conftest import Prepare, Running

pytestmark = pytest.mark.requires("gfarm")

WRITER = """
import os, sys
with open(sys.argv[1], "wb", buffering=0) as file:
    file.write(b"x" * 5000)
    print("writing", flush=True)
    sys.stdin.readline()
    file.write(b"y" * 5000)
    os.fsync(file.fileno())
"""

HOLDER = """
import sys, time
from pathlib import Path
from tests.storage.gfarm.conftest import prepare
running = prepare(Path(sys.argv[1]))
running.storage.start()
print(running.lease.journal, flush=True)
time.sleep(60)
"""


def processes(running: Running, kind: str) -> list[Identity]:
    """Processes of the instance whose command line holds ``kind``; gfsd's workers have lost
    their environment, and are known by where they work."""
    spool = str(running.directory / "spool")
    return [
        one
        for one in members(f"{MARKER}={running.lease.id}", directories=[spool])
        if kind in Path(f"/proc/{one.pid}/cmdline").read_bytes().decode().replace("\0", " ")
    ]


def kill(running: Running, *kinds: str) -> None:
    """SIGKILL, as the kernel does when memory is short."""
    found = [one for kind in kinds for one in processes(running, kind)]
    assert found
    for one in found:
        os.kill(one.pid, signal.SIGKILL)
    until(lambda: not any(one.alive() for one in found), "they have ended")


@pytest.fixture
def writer(gfarm: Running) -> Iterator[subprocess.Popen[str]]:
    """A process of this host in the middle of a file."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", WRITER, gfarm.mount / "written"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "writing\n"
    yield child
    gfarm.storage.stop()  # else nothing ends a writer that waits for the mount
    child.kill()
    child.communicate()


def finish(writer: subprocess.Popen[str]) -> int:
    """Let the writer write the rest; its exit status."""
    writer.communicate("go on\n", timeout=30)
    return writer.returncode


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lost stays lost: no need to wait for it as long as a cell does."""
    monkeypatch.setattr("burstlab.storage.gfarm.provider.SETTLE_S", 0.2)


GFSD = "/gfsd -d"
WORKER = "gfsd: c"  # client; 2.7.20 spells it "cilent"


def test_the_worker_of_a_writer_dies_and_the_writer_is_told_nothing(
    gfarm: Running, writer: subprocess.Popen[str]
) -> None:
    kill(gfarm, WORKER)
    assert finish(writer) == 0, "Gfarm now tells the writer: the premise of this test is gone"
    until(gfarm.wrong, "something is wrong")
    assert any("data lost" in what for what in gfarm.wrong())
    assert gfarm.storage.verify() == ["data lost: /written: 0 bytes by metadata, 10000 on disk"]


def test_gfsd_and_its_workers_die(gfarm: Running, writer: subprocess.Popen[str]) -> None:
    kill(gfarm, GFSD, "gfsd: ")
    assert finish(writer) == 0, "Gfarm now tells the writer: the premise of this test is gone"
    until(gfarm.wrong, "something is wrong")
    assert any("gfsd died" in what for what in gfarm.wrong())
    assert any("/written" in what for what in gfarm.storage.verify())


def test_the_death_of_gfsd_alone_is_not_forgotten(
    gfarm: Running, writer: subprocess.Popen[str]
) -> None:
    kill(gfarm, GFSD)
    until(lambda: any("gfsd died" in what for what in gfarm.wrong()), "its death is told")
    finish(writer)
    assert any("gfsd died" in what for what in gfarm.wrong())


@pytest.mark.slow
def test_gfmd_dies(gfarm: Running, writer: subprocess.Popen[str]) -> None:
    kill(gfarm, "gfmd -d")
    until(lambda: any("gfmd died" in what for what in gfarm.wrong()), "its death is told")
    finish(writer)
    with pytest.raises(BurstlabError, match="gfmd no longer accepts connections"):
        gfarm.storage.verify()


def test_gfarm2fs_dies(gfarm: Running, writer: subprocess.Popen[str]) -> None:
    kill(gfarm, "gfarm2fs -f")
    until(lambda: any("gfarm2fs died" in what for what in gfarm.wrong()), "its death is told")
    assert finish(writer) != 0


def test_who_waits_for_a_dead_gfmd_is_freed_by_stop(gfarm: Running) -> None:
    (gfarm.mount / "file").touch()
    kill(gfarm, "gfmd -d")
    with subprocess.Popen(["ls", "-l", gfarm.mount], stderr=subprocess.DEVNULL) as waiting:
        until(lambda: _waits_in_fuse(waiting.pid), "it hangs")
        gfarm.storage.stop()
        assert waiting.wait(5) != 0


def test_who_stands_in_the_mount_does_not_keep_it(gfarm: Running) -> None:
    with subprocess.Popen(["sleep", "60"], cwd=gfarm.mount) as sleeper:
        gfarm.storage.stop()
        assert mounted_at(gfarm.mount) is None
        sleeper.kill()


def test_a_mount_that_stopped_answering_is_told(
    gfarm: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    (gfarm2fs,) = processes(gfarm, "gfarm2fs -f")
    os.kill(gfarm2fs.pid, signal.SIGSTOP)
    monkeypatch.setattr("burstlab.storage.gfarm.integrity.ANSWER_S", 0.5)
    until(lambda: any("has not answered" in what for what in gfarm.wrong()), "silence is told")


def test_a_mount_taken_away_is_told(gfarm: Running) -> None:
    subprocess.run(["fusermount", "-u", gfarm.mount], check=True)
    assert any("no longer mounted" in what for what in gfarm.wrong())


@pytest.mark.requires("root")
def test_a_full_disk_is_told_by_the_name_of_the_file(start: Prepare, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none", disk], check=True)
    try:
        gfarm = start(directory=disk)
        with pytest.raises(OSError, match="No space left") as refused:
            (gfarm.mount / "big").write_bytes(bytes(8 << 20))
        assert refused.value.filename is None or "big" in refused.value.filename
        until(lambda: "data lost: /big: no space" in gfarm.wrong(), "the loss is told")
        full = f"no space left on the disk of its spool, {disk} (none, tmpfs)"
        assert full in gfarm.wrong()
        gfarm.storage.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_killed_holder_leaves_what_the_next_start_takes_away(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        journal = Path(holder.stdout.readline().strip())
        holder.kill()
    held = lease.read(journal)
    assert mounted_at(tmp_path / "mnt") is not None
    assert lease.reap(grace_s=2) == []
    assert not any(one.alive() for one in held.processes)
    assert not any(Path(path).exists() for path in held.directories)
    assert mounted_at(tmp_path / "mnt") is None
    assert list(members(f"{MARKER}={held.id}")) == []


def _waits_in_fuse(pid: int) -> bool:
    return Path(f"/proc/{pid}/wchan").read_text() == "request_wait_answer"
