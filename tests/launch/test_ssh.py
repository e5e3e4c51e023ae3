"""A cell whose host is reached through ssh: a real sshd, a real agent, on this machine."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab.launch import launcher
from tests.cell.running import Place
from tests.polling import until

HOST = "127.0.0.2"

pytestmark = pytest.mark.requires("ssh")


class Sshd:
    """An sshd of this user's own, with throw-away keys; ``options`` are for ssh."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700)
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name]
            subprocess.run(command, check=True)
        self.port = free_port()
        config = directory / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress {HOST}\nHostKey {directory}/host\n"
            f"AuthorizedKeysFile {directory}/user.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
            "PasswordAuthentication no\nPermitRootLogin yes\nAcceptEnv BURSTLAB_STATE\n"
        )
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # its privilege separation directory
        sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
        assert sshd is not None
        self.daemon = subprocess.Popen([sshd, "-D", "-f", config, "-E", directory / "log"])
        words = ["Port", self.port, "IdentityFile", directory / "user", "IdentitiesOnly", "yes"]
        words += ["UserKnownHostsFile", "/dev/null", "StrictHostKeyChecking", "no"]
        words += ["LogLevel", "ERROR", "SendEnv", "BURSTLAB_STATE"]
        pairs = zip(words[::2], words[1::2], strict=True)
        self.options = [w for key, value in pairs for w in ("-o", f"{key}={value}")]
        until(lambda: listens(self.port), "sshd listens")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    daemon = Sshd(tmp_path / "sshd")
    yield daemon
    daemon.daemon.terminate()
    daemon.daemon.wait()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def through(sshd: Sshd, host: str = HOST) -> list[str]:
    """Flags of a cell on one host behind ssh."""
    place = ["--storage", "nodelocal", "--launch", "ssh", "--hosts", host]
    return place + [f"--launch-option={word}" for word in sshd.options]


def command(place: Place, flags: list[str], script: str) -> list[str]:
    """`burstlab run`, not on a virtual node."""
    words = place.command(*flags, run=["sh", "-c", script])
    return [word for word in words if word != "--virtual"]


def start(place: Place, flags: list[str], script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(place, flags, script), env=place.environment(), stderr=subprocess.PIPE, text=True
    )


def words_of(pid: int) -> list[bytes]:
    """Command line of a process; empty when it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def agents(place: Place) -> list[int]:
    """The agents of this place's cells, not the shells and ssh that lead to them."""
    found = []
    for pid in place.processes():
        words = words_of(pid)
        if words[1:3] == [b"-m", b"burstlab.agent"]:
            found.append(pid)
    return found


def test_a_cell_on_a_host_behind_ssh(place: Place, sshd: Sshd) -> None:
    script = 'cat "$BURSTLAB_HOSTFILE"; touch "$BURSTLAB_MOUNT/here" "$BURSTLAB_LOCAL/there"'
    cell = start(place, through(sshd), script)
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 0, said
    assert (place.cell / "workload.log").read_text() == f"{HOST}\n"
    assert place.left_behind() == []


def test_a_host_that_does_not_answer_is_named(place: Place, sshd: Sshd) -> None:
    sshd.daemon.terminate()
    sshd.daemon.wait()
    cell = start(place, through(sshd), "true")
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 121
    assert f"FAILED in allocation: {HOST}: ssh ended with exit status 255" in said
    assert "Connection refused" in said
    assert place.left_behind() == []


def test_an_agent_that_is_killed_fails_the_cell(place: Place, sshd: Sshd) -> None:
    cell = start(place, through(sshd), "sleep 60")
    until(lambda: (place.cell / "workload.log").exists(), "the workload runs")
    os.kill(agents(place)[0], signal.SIGKILL)
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 122, said
    assert "agents died" in said or f"{HOST}: its agent died (killed by SIGKILL)" in said
    assert place.reap().returncode == 0, "the agent's own lease is left to the next on its host"
    assert place.left_behind() == []


def test_when_the_head_is_killed_the_agent_cleans_up_alone(place: Place, sshd: Sshd) -> None:
    cell = start(place, through(sshd), "sleep 60")
    until(lambda: (place.cell / "workload.log").exists(), "the workload runs")
    assert len(agents(place)) == 1
    cell.kill()
    cell.communicate(timeout=60)
    for pid in place.processes():
        words = words_of(pid)
        if b"ClusterShell.CLI.Clush" in words:
            os.kill(pid, signal.SIGKILL)  # as when the head node is lost
    until(lambda: not agents(place), "the agent has gone")
    assert [str(p) for p in place.scratch.glob("*.node")] == []
    assert place.reap().returncode == 0
    assert place.left_behind() == []


def test_one_host_that_can_not_be_reached_is_named_at_once(place: Place, sshd: Sshd) -> None:
    cell = start(place, [*through(sshd, f"{HOST},{HOST}x"), "--nodes", "2"], "true")
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 121
    assert f"FAILED in allocation: {HOST}x: ssh ended with exit status 255" in said
    assert place.left_behind() == []


@pytest.mark.parametrize("name", ["ssh", "srun", "mpirun"])
def test_every_host_is_reached_once_and_words_stay_words(name: str) -> None:
    argv = launcher(name)(["n1", "n2"], ["python", "-c", "print('a b; $HOME')"], ["--option"])
    assert argv.count("n1,n2") == 1
    if name == "srun":
        assert argv[-3:] == ["python", "-c", "print('a b; $HOME')"]
    assert any("--option" in word for word in argv)
