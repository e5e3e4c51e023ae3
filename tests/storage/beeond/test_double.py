"""The double does what the real command was seen to do (FACTS.md), where burstlab relies on it."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.polling import until
from tests.storage.beeond.cluster import Cluster

pytestmark = [pytest.mark.requires("root", "beeond"), pytest.mark.slow]
CAPTURES = Path(__file__).parent / "captures"


class Session:
    """Sessions by hand; the paths of the captures are put for ours before comparing."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, own = cluster, cluster.own
        self.nodes = cluster.root / "nodes"
        self.nodes.write_text("node1\nnode2\n")
        self.status, self.data, self.mount = own / "status", own / "data", own / "mnt"
        self.logs, self.conf = own / "logs", own / "conf"
        self.place = {"/var/tmp/beeond-job1.tmp": self.status, "/var/log/beeond": self.logs}

    def start(self, *more: str) -> str:
        words = ["-n", self.nodes, "-d", self.data, "-c", self.mount, "-i", self.status]
        return self._said("start", *words, "-L", self.logs, "-f", self.conf, *more)

    def stop(self, *more: str) -> str:
        return self._said("stop", "-n", self.nodes, "-i", self.status, *more)

    def on(self, host: str, path: Path) -> Path:
        return self.cluster.inside(host) / path.relative_to(self.cluster.own)

    def captured(self, name: str) -> str:
        text = (CAPTURES / name).read_text()
        for there, here in self.place.items():
            text = text.replace(there, str(here))
        return without_time(text)

    def _said(self, *words: str | Path) -> str:
        done = self.cluster.beeond(*words)
        self.code, self.errors = done.returncode, done.stderr
        return without_time(done.stdout)


def without_time(text: str) -> str:
    return re.sub(r"\d{8}-\d{6}", "TIME", text).strip()


@pytest.fixture
def session(cluster: Cluster) -> Session:
    return Session(cluster)


def test_a_start_says_what_the_real_one_said(session: Session) -> None:
    assert session.start() == session.captured("D-start.out")
    assert session.code == 0
    lines = without_time(session.on("node1", session.status).read_text()).splitlines()
    log, pid = f"{session.logs}/beegfs-{{}}_TIME.log", "/var/run/beegfs-{}-TIME.pid"
    data = session.data
    assert lines == [
        f"node1,beegfs-mgmtd,{data}/beegfs-mgmtd,{log.format('mgmtd')},{pid.format('mgmtd')}",
        f"node1,beegfs-storage,{data}/beegfs-storage,{log.format('storage')},"
        f"{pid.format('storage')}",
        f"node1,beegfs-meta,{data}/beegfs-meta,{log.format('meta')},{pid.format('meta')}",
        f"node1,beegfs-helperd,-,{log.format('client')},{pid.format('helperd')}",
        f"node1,beegfs-client,{session.mount},{log.format('client')},-",
    ]
    services = [line.split(",")[1] for line in read(session, "node2")]
    assert services == ["beegfs-storage", "beegfs-helperd", "beegfs-client"]
    (session.on("node1", session.mount) / "file").write_text("x")
    assert (session.on("node2", session.mount) / "file").read_text() == "x"
    assert (session.on("node1", session.mount)).stat().st_mode & 0o777 == 0o777


def test_by_pdsh(session: Session) -> None:
    session.cluster.double.with_pdsh()
    assert session.start("-P") == session.captured("M1-start-P.out")
    assert len(read(session, "node1")) == 5
    assert (session.stop("-P", "-L", "-d"), session.code) == (session.captured("M2-stop-P.out"), 0)
    session.stop("-P")
    assert session.code == 1 and "Please see pdsh output" in session.errors
    for mark in Path("/tmp").glob("beegfs.pdsh_fail.*"):
        mark.unlink()


def test_a_second_start_harms_nothing(session: Session) -> None:
    session.start()
    before = session.cluster.processes("node1")
    session.start()
    assert session.code == 1 and "on host node1 already exists" in session.errors
    assert session.cluster.processes("node1") == before


def test_a_stop_leaves_empty_directories(session: Session) -> None:
    session.start()
    said = session.stop("-L", "-d")
    expected = session.captured("F-stop.out").replace("   660   663", "")  # whom it killed then
    assert (session.code, said) == (0, expected)
    for path in (session.data, session.logs, session.mount):
        assert list(session.on("node1", path).iterdir()) == []
    assert not session.on("node2", session.status).exists()
    assert [
        words for words in session.cluster.processes("node1").values() if "beegfs" in words
    ] == []


def test_without_d_the_old_files_come_back(session: Session) -> None:
    session.start()
    (session.on("node1", session.mount) / "keep").write_text("keep")
    session.stop("-L")
    session.start()
    assert session.code == 0, "no start looks whether its data directory is empty"
    assert (session.on("node2", session.mount) / "keep").read_text() == "keep"


def test_a_failed_start_rolls_nothing_back(session: Session) -> None:
    session.cluster.double.faults("fail mgmtd node1")
    session.start()
    assert session.code == 1 and "Unable to start beegfs-mgmtd on host: node1" in session.errors
    assert not session.on("node1", session.status).exists()
    assert session.on("node2", session.status).read_text() == "", "it was touched on all, before"
    session.cluster.double.faults()
    session.start()
    assert "on host node2 already exists" in session.errors
    assert session.stop() == session.captured("A3-stop.out")
    assert (session.code, session.errors.strip()) == (0, session.captured("A3-stop.err"))


def test_what_has_no_line_in_the_status_file_is_not_deleted(session: Session) -> None:
    session.cluster.double.faults("fail meta node1")
    assert session.start() == session.captured("B-start.out")
    assert "Could not open mtab" in session.errors
    session.stop("-L", "-d")
    assert session.code == 0
    assert [path.name for path in session.on("node1", session.data).iterdir()] == ["beegfs-meta"]


def test_no_authentication_no_daemon(session: Session) -> None:
    for conf in session.on("node1", session.conf).iterdir():
        conf.write_text("")
    assert session.start() == session.captured("A-noauth.out")
    assert session.errors.split() == session.captured("A-noauth.err").split()


def test_an_unreachable_host_is_told_before_anything_is_done(session: Session) -> None:
    session.start()
    session.cluster.down("node2")
    before = session.cluster.processes("node1")
    assert session.stop("-L", "-d", "-c") == session.captured("I1-stop-nodegone.out")
    assert session.code == 1
    assert session.captured("I1-stop-nodegone.err") in session.errors
    assert session.cluster.processes("node1") == before


def test_a_stop_after_a_reboot_says_errors_and_0(session: Session) -> None:
    session.start()
    for pid_file in session.cluster.inside("node2", "/run").glob("beegfs-*"):
        pid_file.unlink()
    said = session.stop("-L", "-d")
    assert session.code == 0
    for line in session.captured("J1-stop-rebooted.out").splitlines():
        if "PID file" in line:
            assert line in said


def test_a_stop_kills_who_stands_in_the_mount_point(session: Session) -> None:
    session.start()
    enter = session.cluster.enter("node1", Path("/"))
    command = ["sh", "-c", 'cd "$0" && exec sleep 60', session.mount]
    worker = subprocess.Popen([*enter, *command])
    running = session.cluster.processes
    until(lambda: "sleep 60 " in running("node1").values(), "it stands there")
    session.stop("-L", "-d", "-c")
    assert worker.wait(10) == -9


def read(session: Session, host: str) -> list[str]:
    return session.on(host, session.status).read_text().splitlines()
