"""Identity: a pid that was recycled is not the process it once was."""

import os
import signal
import subprocess
import sys

from burstlab import process
from burstlab.process import Identity


def sleeper(*words: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*words, "sleep", "60"], env={**os.environ, **environment}, start_new_session=True
    )


def test_identity_lives_exactly_as_long_as_its_process() -> None:
    child = sleeper()
    identity = Identity.of(child.pid)
    assert identity.alive()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not identity.alive(), "a zombie does not run"
    child.wait()
    assert not identity.alive()


def test_a_recycled_pid_is_neither_alive_nor_ended() -> None:
    child = sleeper()
    true = Identity.of(child.pid)
    earlier = true._replace(start_ticks=true.start_ticks - 1)
    other_boot = true._replace(boot="another boot")
    assert not earlier.alive()
    assert not other_boot.alive()
    assert process.end([earlier, other_boot], grace_s=0.1) == []
    assert child.poll() is None, "the process that has the pid now was signalled"
    assert process.end([true]) == []
    assert child.wait() == -signal.SIGTERM


def test_who_ignores_sigterm_is_killed() -> None:
    script = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert process.end([Identity.of(child.pid)], grace_s=0.1) == []
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()


def test_members_are_found_by_mark_session_and_directory(tmp_path: os.PathLike[str]) -> None:
    marked, led = sleeper(SOME_MARK="here"), sleeper()
    at_home = subprocess.Popen(["sleep", "60"], cwd=tmp_path)
    stranger = sleeper(SOME_MARK="here-too")
    try:
        found = {m.pid for m in process.members("SOME_MARK=here", {led.pid}, [os.fspath(tmp_path)])}
        assert {marked.pid, led.pid, at_home.pid} <= found
        assert stranger.pid not in found, "a longer value of the mark is another mark"
        spared = {m.pid for m in process.members("SOME_MARK=here", but_not={marked.pid})}
        assert marked.pid not in spared
    finally:
        for child in (marked, led, at_home, stranger):
            child.kill()
            child.wait()
