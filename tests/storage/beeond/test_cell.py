"""A cell on BeeOND, with everything that can go wrong: the reason is told, and nothing is left."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cell.running import reach
from tests.polling import until
from tests.storage.beeond.cluster import Cluster

pytestmark = pytest.mark.requires("root", "beeond")
SLOW = pytest.mark.slow

WRITE = 'echo hello >"$BURSTLAB_MOUNT/file" && ssh node2 cat "$BURSTLAB_MOUNT/file"'
FAILURES = {  # of one host at each stage -> what the cell's reason must tell
    "unreachable node2": "beeond start: Host is unreachable via ssh: node2",
    "fail touch node2": "beeond start: Could not create status file",
    "fail log node2": "beeond start: Could not create log path",
    "fail mgmtd node1": "Unable to start beegfs-mgmtd on host: node1",
    "fail storage node2": "Could not open mtab.; Unable to start beegfs-storage on host: node2",
    "fail meta node1": "Unable to start beegfs-meta on host: node1",
    "fail helperd node2": "Unable to start beegfs-client on host: node2",
    "fail mount node2": "Unable to start BeeGFS client on host: node2",
}


@pytest.mark.parametrize(
    ("generation", "pdsh", "hosts"),
    [(7, False, 2), pytest.param(7, True, 3, marks=SLOW), pytest.param(8, True, 2, marks=SLOW)],
)
def test_a_cell(
    make_cluster: Callable[..., Cluster], generation: int, pdsh: bool, hosts: int
) -> None:
    cluster = make_cluster(generation, hosts)
    if pdsh:
        cluster.double.with_pdsh()
    done = cluster.run(script=WRITE)
    assert done.returncode == 0, done.stderr
    assert (cluster.cell / "workload.log").read_text() == "hello\n"
    storage = cluster.record()["storage"]
    assert (storage["storage_servers"], storage["metadata_servers"]) == (hosts, 1)
    assert storage["pdsh"] == pdsh
    assert storage["version"] == f"{generation}.x"
    if generation == 7:
        assert storage["stripes"]["targets"] == "4" and storage["stripes"]["chunk_size"] == "512K"
    assert cluster.left_behind() == []


@SLOW
def test_8_looks_for_authentication_in_the_directory_given(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(8)
    for name in cluster.names:
        (cluster.inside(name) / "conf/conn.auth").write_text("secret")
    done = cluster.run("more=-C", script=WRITE)
    assert done.returncode == 0, done.stderr
    assert any(
        f"--auth-file {cluster.own}/conf/conn.auth" in call for call in cluster.double.calls()
    )
    assert cluster.left_behind() == []


@pytest.mark.parametrize(
    "failure",
    [pytest.param(one, marks=() if one == "fail mount node2" else SLOW) for one in FAILURES],
)
@pytest.mark.slow
def test_a_start_that_fails_on_one_host(cluster: Cluster, failure: str) -> None:
    cluster.double.faults(failure)
    done = cluster.run()
    record = cluster.record()
    assert (done.returncode, record["status"]) == (122, "failed"), done.stderr
    assert FAILURES[failure] in record["reason"]
    assert stopped(cluster), "on the survivors, where a host is lost"
    assert cluster.left_behind() == []


@SLOW
@pytest.mark.parametrize("service", ["storage", "mount"])
def test_a_start_by_pdsh_that_fails_on_one_host(cluster: Cluster, service: str) -> None:
    """What was started on the others is in no status file, so no stop knows of it."""
    cluster.double.with_pdsh()
    cluster.double.faults(f"fail {service} node2")
    done = cluster.run()
    assert done.returncode == 122, done.stderr
    told = "node2: mount: " if service == "mount" else "node2: Error: Could not open mtab."
    assert f"beeond start: {told}" in cluster.record()["reason"]
    assert [*Path("/tmp").glob("beegfs.pdsh_fail.*")] == []
    assert cluster.left_behind() == []


@pytest.mark.slow
def test_a_start_that_waits_for_ever(cluster: Cluster) -> None:
    cluster.double.without_authentication()
    done = cluster.run("start_limit_s=5")
    assert done.returncode == 122, done.stderr
    reason = cluster.record()["reason"]
    assert "beeond start did not end within 5 s" in reason
    assert "No connAuthFile configured" in reason, "what it waits for is told"
    assert stopped(cluster)
    assert cluster.left_behind() == []


@SLOW
def test_told_to_stop_while_the_start_waits(cluster: Cluster) -> None:
    cluster.double.without_authentication()
    cell = cluster.start()
    until(lambda: running(cluster, "node2", "storage"), "the second storage server runs")
    os.kill(pid_of(cluster, "burstlab run"), signal.SIGTERM)
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 143, said
    assert cluster.left_behind() == []


@pytest.mark.parametrize("hangs", [True, pytest.param(False, marks=SLOW)])
@pytest.mark.slow
def test_killed_then_reaped(cluster: Cluster, hangs: bool) -> None:
    if hangs:
        cluster.double.without_authentication()
    cell = cluster.start()
    if hangs:
        until(lambda: running(cluster, "node2", "storage"), "the second storage server runs")
    else:
        reach(cell, "run")
    victim = pid_of(cluster, "burstlab run")
    os.kill(victim, signal.SIGKILL)
    cell.communicate(timeout=60)
    until(lambda: not running(cluster, "node2", "storage"), "the agents have cleaned")
    until(lambda: not pid_of(cluster, "burstlab.agent"), "they have ended")
    cluster.reap()
    assert cluster.left_behind() == []
    assert stopped(cluster)


@SLOW
def test_a_host_is_lost_under_the_workload(cluster: Cluster) -> None:
    cell = cluster.start()
    reach(cell, "run")
    cluster.down("node2")
    _, said = cell.communicate(timeout=60)
    record = cluster.record()
    assert (cell.returncode, record["status"]) == (122, "failed"), said
    assert "node2" in record["reason"]
    assert cluster.left_behind() == [], "stopped with the survivors, for else nothing is stopped"


@SLOW
@pytest.mark.parametrize("prefix", ["", "env -u NOTHING"])  # where a site has sudo
def test_a_stop_that_succeeds_and_does_nothing(cluster: Cluster, prefix: str) -> None:
    script = f'echo "drop node2" >"{cluster.double.root}/faults"'
    done = cluster.run(f"prefix={prefix}", script=script)
    assert done.returncode == 0, done.stderr
    assert "BeeOND" not in str(cluster.record()["issues"])
    assert cluster.left_behind() == []


@SLOW
@pytest.mark.parametrize("prefix", ["", "setsid --wait"])  # sudo may give a session of its own
def test_a_stop_that_hangs(cluster: Cluster, prefix: str) -> None:
    script = f'echo "hang stop" >"{cluster.double.root}/faults"'
    done = cluster.run("stop_limit_s=1", f"prefix={prefix}", script=script)
    assert done.returncode == 0, done.stderr
    assert "beeond stop did not end within 1 s" in str(cluster.record()["issues"])
    assert cluster.left_behind() == []


@SLOW
def test_a_user_who_reads_a_log_is_left_alone(cluster: Cluster) -> None:
    reader = "env -i setsid setpriv --reuid=65534 --clear-groups sh -c 'sleep 99; :'"
    done = cluster.run(script=f'{reader} "$BURSTLAB_LOCAL/beeond-logs/beegfs-meta.log" &')
    assert done.returncode == 0, done.stderr
    assert any(words.startswith("sh -c sleep 99") for words in cluster.processes("node1").values())


@SLOW
def test_a_daemon_that_dies_under_the_workload(cluster: Cluster) -> None:
    cell = cluster.start()
    reach(cell, "run")
    os.kill(cluster.daemon("node2", "storage"), signal.SIGKILL)
    _, said = cell.communicate(timeout=60)
    assert cell.returncode == 122, said
    assert "node2: beegfs-storage died" in cluster.record()["reason"]
    assert cluster.left_behind() == []


@SLOW
def test_another_sessions_data_stay_where_they_are(cluster: Cluster) -> None:
    other = [cluster.inside(name) / "data/beegfs-mgmtd/tree" for name in cluster.names]
    for tree in other:
        tree.mkdir(parents=True)
        (tree / "old").write_text("of somebody else")
    done = cluster.run(f"data={cluster.own}/data", script='ls "$BURSTLAB_MOUNT/.."')
    assert done.returncode == 0, done.stderr
    assert (cluster.cell / "workload.log").read_text() == "work\n"
    for tree in other:
        assert (tree / "old").read_text() == "of somebody else"
        assert [path.name for path in tree.parents[1].iterdir()] == ["beegfs-mgmtd"]
    assert cluster.left_behind() == []


@SLOW
def test_old_files_in_the_new_mount_fail_the_cell(cluster: Cluster) -> None:
    cluster.double.faults("old data")
    done = cluster.run()
    assert done.returncode == 122, done.stderr
    assert "is not empty after the start: old" in cluster.record()["reason"]
    assert cluster.left_behind() == []


def test_it_says_what_it_lacks(cluster: Cluster) -> None:
    done = cluster.run("conf=")
    assert done.returncode == 0
    assert "beeond 7 starts no daemon without -f" in cluster.record()["reason"]
    (cluster.inside("node2") / "conf/beegfs-meta.conf").unlink()
    cluster.run()
    expected = f"node2: {cluster.own}/conf has no beegfs-meta.conf"
    assert cluster.record()["reason"].startswith(expected)
    (cluster.double.binaries / "beeond").unlink()
    cluster.run()
    assert "beeond is not here" in cluster.record()["reason"]
    assert cluster.left_behind() == []


def stopped(cluster: Cluster) -> bool:
    """Whether `beeond stop` did anything on any host."""
    return any("do_stoplocal" in call for call in cluster.double.calls())


def running(cluster: Cluster, host: str, service: str) -> bool:
    program = f"/opt/beegfs/sbin/beegfs-{service} "
    return any(words.startswith(program) for words in cluster.processes(host).values())


def pid_of(cluster: Cluster, words: str) -> int:
    """Of a Python on any host that runs ``words``, or 0."""
    for name in cluster.names:
        for pid, said in cluster.processes(name).items():
            if Path(said.split()[0]).name.startswith("python") and words in said:
                return pid
    return 0
