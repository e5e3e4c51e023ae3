"""An agent as a process: what it does whoever is at the other end of its stdin."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burstlab.process import this_boot
from tests.cell.running import Place
from tests.polling import until

CELL = "cell-of-test"
LIMIT_S = 60.0


class Agent:
    """One of host n1, spoken to over its pipes."""

    def __init__(self, place: Place) -> None:
        place.scratch.mkdir()
        self._place = place
        self.process = subprocess.Popen(
            [sys.executable, "-m", "burstlab.agent", "n1"],
            env=place.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._heard: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """The next answer. Raises queue.Empty when none comes."""
        answer: dict[str, Any] = json.loads(self._heard.get(timeout=LIMIT_S))
        return answer

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._heard.put(line)

    def hello(self, **fields: Any) -> None:
        directory = self._place.scratch / "node"
        about = {"id": CELL, "hosts": ["n1"], "directory": str(directory), "boot": this_boot()}
        self.say(hello={**about, "cell_dir": str(self._place.cell), "job": {}, **fields})
        assert self.hear()["ready"] is True

    def call(self, number: int, action: str, **arguments: Any) -> None:
        self.say(call=action, arguments=arguments, number=number)

    def close(self) -> None:
        self.say(close=True)
        assert self.hear()["problems"] == []
        assert self.process.wait(LIMIT_S) == 0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def agent(place: Place) -> Iterator[Agent]:
    agent = Agent(place)
    yield agent
    agent.process.kill()
    agent.process.wait()
    # Who was killed with his name space a moment ago may still be seen.
    until(lambda: place.left_behind() == [], "nothing is left behind", limit_s=5.0)


def test_a_call_does_not_wait_for_one_that_was_given_up(agent: Agent, place: Place) -> None:
    """Whoever stops a cell that warms its cache asks for the storage's end, and the next."""
    agent.hello()
    source = place.root / "fifo"
    os.mkfifo(source)
    read = f"sh -c 'exec cat {source}'"
    agent.call(1, "burstlab.cache:enforce", state="cold", data="", drop_caches=read)
    writer = until(lambda: _opened(source), "the first call is at work")
    agent.call(2, "burstlab.storage.nodelocal:make_directory")
    try:
        assert agent.hear() == {"host": "n1", "number": 2, "result": None}
        os.close(writer)
        assert agent.hear()["number"] == 1
    finally:
        agent.close()


def test_the_end_waits_for_a_call_that_is_about_to_end(agent: Agent, place: Place) -> None:
    """Another host may have failed the same call, which ends the cell at once."""
    agent.hello()
    source = place.root / "fifo"
    os.mkfifo(source)
    agent.call(1, "burstlab.cache:enforce", state="cold", data="", drop_caches=f"cat {source}")
    writer = until(lambda: _opened(source), "the call is at work")
    agent.say(close=True)
    threading.Timer(0.2, os.close, (writer,)).start()
    answered = agent.hear()
    assert answered["number"] == 1 and "result" in answered
    assert agent.hear() == {"host": "n1", "closed": True, "problems": []}
    assert agent.process.wait(LIMIT_S) == 0


def _opened(fifo: Path) -> int | None:
    """A descriptor to write to a FIFO that is read by somebody."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def test_one_that_nobody_speaks_to_ends(place: Place) -> None:
    """Behind ssh the other end of stdin may be a host that is gone, of which no one tells."""
    script = "import sys; from burstlab import agent; agent.HELLO_S = 0.5; sys.exit(agent.main([]))"
    agent = subprocess.Popen(
        [sys.executable, "-c", script],
        env=place.environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert agent.wait(LIMIT_S) == 1
        assert agent.stderr is not None
        assert "nobody said hello within 0.5 s" in agent.stderr.read()
    finally:
        agent.kill()
        agent.communicate()


def test_one_that_was_spoken_to_stays_however_long_it_hears_nothing(place: Place) -> None:
    script = "import sys; from burstlab import agent; agent.HELLO_S = 0.2; sys.exit(agent.main([]))"
    say = {"id": CELL, "hosts": ["n1"], "directory": str(place.root / "node"), "job": {}}
    say |= {"cell_dir": str(place.cell), "boot": this_boot()}
    agent = subprocess.Popen(
        [sys.executable, "-c", script],
        env=place.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert agent.stdin is not None and agent.stdout is not None
    try:
        agent.stdin.write(json.dumps({"hello": say}) + "\n")
        agent.stdin.flush()
        assert json.loads(agent.stdout.readline())["ready"] is True
        with pytest.raises(subprocess.TimeoutExpired):
            agent.wait(0.6)
        assert agent.communicate("", timeout=LIMIT_S)
        assert agent.returncode == 0
    finally:
        agent.kill()
        agent.communicate()


@pytest.fixture
def workload(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """A process that bears the cell's name, as srun passes it on."""
    environment = {**place.environment(), "BURSTLAB_CELL": CELL}
    process = subprocess.Popen(["sleep", "600"], env=environment)
    until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n", "it has begun")
    yield process
    process.kill()
    process.wait()


def test_elsewhere_it_ends_what_bears_the_cells_name(
    workload: subprocess.Popen[bytes], agent: Agent
) -> None:
    agent.hello(boot="another host's")
    agent.close()
    assert workload.wait(LIMIT_S) == -signal.SIGTERM


def test_elsewhere_the_next_cell_ends_it_in_a_dead_agents_stead(
    workload: subprocess.Popen[bytes], agent: Agent, place: Place
) -> None:
    agent.hello(boot="another host's")
    agent.process.kill()
    agent.process.wait()
    assert place.reap().returncode == 0
    assert workload.wait(LIMIT_S) == -signal.SIGTERM


def test_on_the_cells_own_host_that_is_the_cells_own_business(
    agent: Agent, workload: subprocess.Popen[bytes]
) -> None:
    agent.hello(boot=this_boot())
    agent.close()
    assert workload.poll() is None


@pytest.mark.requires("root")
def test_elsewhere_who_lives_in_another_name_space_is_spared(place: Place, agent: Agent) -> None:
    """A cell in a container of this very host seems to be elsewhere, and is seen from here."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "sleep", "600"]
    outer = {**place.environment(), "BURSTLAB_CELL": "another"}
    inside = subprocess.Popen(
        [*command[:-2], "env", f"BURSTLAB_CELL={CELL}", *command[-2:]], env=outer
    )
    try:
        until(lambda: _children(inside.pid), "it has begun")
        agent.hello(boot="another name space's")
        agent.close()
        assert inside.poll() is None
    finally:
        inside.kill()
        inside.wait()


def _children(pid: int) -> list[int]:
    """Those that run sleep."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in found if Path(f"/proc/{p}/comm").read_text() == "sleep\n"]
