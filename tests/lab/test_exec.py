"""`burstlab lab exec` runs a command as a shell would, and ends it in order."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.lab.cluster import REPOSITORY, Cluster
from tests.polling import until

pytestmark = pytest.mark.requires("root", "netns", "lab")

# Says when it is ready and which signal it got; without one it ends with status 9 after a while.
PATIENT = """
trap 'echo INT; exit 3' INT; trap 'echo TERM; exit 4' TERM
echo ready; n=0; while [ $n -lt 600 ]; do sleep .1; n=$((n + 1)); done; exit 9
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One node."""
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "1")
        yield cluster


def test_exec_passes_status_input_and_a_clean_environment(cluster: Cluster) -> None:
    assert cluster.lab("exec", "node01", "--", "sh", "-c", "exit 7").returncode == 7
    cluster.environment["SLURM_JOB_ID"] = "1"
    try:
        said = cluster.run("node01", "env")
    finally:
        del cluster.environment["SLURM_JOB_ID"]
    assert "SLURM_JOB_ID" not in said
    assert f"HOME={cluster.directory}/home" in said.splitlines()
    assert "USER=lab" in said.splitlines()


def test_an_unknown_machine_or_user_is_named(cluster: Cluster) -> None:
    assert "no machine 'node09'" in cluster.lab("exec", "node09", "--", "true").stderr
    assert "no such user" in cluster.lab("exec", "--user", "?", "head", "--", "true").stderr


def test_input_reaches_the_command_and_output_comes_back_apart(cluster: Cluster) -> None:
    done = subprocess.run(
        cluster.argv("exec", "node01", "--", "sh", "-c", "cat; echo problem >&2"),
        env=cluster.environment,
        cwd=REPOSITORY,
        input="text",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("text", "problem\n")


def test_sigterm_reaches_the_command_and_its_status_comes_back(cluster: Cluster) -> None:
    child = cluster.start("exec", "node01", "--", "sh", "-c", PATIENT)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    child.terminate()
    assert child.communicate(timeout=60)[0] == "TERM\n"
    assert child.returncode == 4


def test_control_c_reaches_the_command_and_nothing_but_it(cluster: Cluster) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(REPOSITORY)
        argv = cluster.argv("exec", "node01", "--", "sh", "-c", PATIENT)
        os.execvpe(argv[0], argv, cluster.environment)
    try:
        assert b"ready" in os.read(terminal, 1000)
        os.write(terminal, b"\x03")
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 3
        assert b"INT" in os.read(terminal, 1000)
    finally:
        os.close(terminal)


def test_killed_exec_kills_its_command_and_the_machine_can_still_be_ended(own: Cluster) -> None:
    own.must("up", "--nodes", "1")
    child = own.start("exec", "node01", "--", "sleep", "3434")
    until(lambda: "sleep 3434" in own.run("node01", "ps", "-eo", "args"), "the command runs")
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=60)
    until(lambda: "sleep 3434" not in own.run("node01", "ps", "-eo", "args"), "it was killed")
    assert "defunct" not in own.run("node01", "ps", "-eo", "args")
    own.must("kill", "node01")
