"""Plain rake on two hosts, this one and one behind a real ssh: the same mosaic, nothing left."""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.test_ssh import HOST, Sshd
from tests.polling import until

from .running import DIRECTORY, Workplace, replace_program
from .test_engines import PRODUCTS, same
from .test_interruption import marked
from .test_operations import expected_counts

pytestmark = pytest.mark.requires("montage", "ssh")

HERE = "localhost"


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Words for ssh to reach HOST."""
    daemon = Sshd(tmp_path_factory.mktemp("ssh") / "sshd")
    yield " ".join(daemon.options)
    daemon.daemon.terminate()
    daemon.daemon.wait()


def hosts(place: Workplace, ssh: str, lines: str = f"{HERE} 1\n{HOST} 1\n") -> dict[str, str]:
    """Variables of a run on the hosts of a file as Pwrake reads it."""
    path = place.root / "two_hosts"
    path.write_text(lines)
    return {"BURSTLAB_HOSTFILE": str(path), "MONTAGE_SSH_OPTION": ssh}


@pytest.mark.slow
def test_two_hosts_make_the_same_mosaic(finished: Workplace, place: Workplace, ssh: str) -> None:
    done = place.run("--remote", "ssh", **hosts(place, ssh))
    assert done.returncode == 0, done.stderr
    assert same(finished, place) == list(PRODUCTS)
    assert place.facts()["engine"].startswith("rake 13") and place.facts()["remote"] == "ssh"
    rows = place.operations()
    assert Counter(row["operation"] for row in rows) == expected_counts(place.facts())
    assert list(rows[0]) == list(finished.operations()[0])
    runs = Counter(row["host"] for row in rows)
    assert set(runs) == {HERE, HOST} and min(runs.values()) > len(rows) / 4
    assert (place.cell / "rake.hosts").read_text() == f"{HERE} 1\n{HOST} 1\n"


@pytest.mark.slow
def test_no_host_runs_more_commands_at_once_than_it_has_cores(place: Workplace, ssh: str) -> None:
    done = place.run("--remote", "ssh", **hosts(place, ssh, f"{HERE} 1\n{HOST} 2\n"))
    assert done.returncode == 0, done.stderr
    for host, cores in ((HERE, 1), (HOST, 2)):
        rows = [row for row in place.operations() if row["host"] == host]
        starts = [(float(row["start_s"]), 1) for row in rows]
        ends = [(float(row["start_s"]) + float(row["elapsed_s"]), -1) for row in rows]
        at_once = [0]
        for _, change in sorted(starts + ends):
            at_once.append(at_once[-1] + change)
        assert max(at_once) == cores


def test_a_failing_command_is_told_with_its_own_words(place: Workplace, ssh: str) -> None:
    path = replace_program(place.root / "bin", "mProjectPP", "echo so what; exit 7")
    done = place.run("--remote", "ssh", **hosts(place, ssh), PATH=path)
    assert done.returncode == 1
    assert "exit status 7: so what" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("event", ["SIGTERM", "SIGINT", "engine killed", "connection killed"])
def test_whatever_ends_a_run_no_command_goes_on(place: Workplace, ssh: str, event: str) -> None:
    path = replace_program(place.root / "bin", "mProjectPP", 'echo $$ > "$2.pid"; sleep 600')
    mark = f"BURSTLAB_CELL={place.root.name}-{event.replace(' ', '-')}"
    variables = {**hosts(place, ssh), "PATH": path, "BURSTLAB_CELL": mark.split("=")[1]}
    process = place.start("--remote", "ssh", **variables)
    assert process.stderr
    with process.stderr:
        until(lambda: len(list(place.mount.glob("projected/*.pid"))) == 2, "one on each host")
        # A shell has its parent's words until it is the program that it calls.
        until(
            lambda: sum("mProjectPP" in words for words in marked(f"{mark}.{HOST}")) == 1,
            "one of them over there",
        )
        [engine] = children(process.pid)
        if event.startswith("SIG"):
            process.send_signal(signal.Signals[event])
            status = 128 + signal.Signals[event]
        elif event == "engine killed":
            os.kill(engine, signal.SIGKILL)
            status = 128 + signal.SIGKILL
        else:
            [connection] = [pid for pid in children(engine) if name(pid) == "ssh"]
            os.kill(connection, signal.SIGKILL)
            status = 1
        assert process.wait(20) == status
        if event == "connection killed":
            assert f"{HOST}: the connection is lost" in process.stderr.read()
    until(lambda: marked(mark) == [], f"the far end hears of it: {marked(mark)}")
    assert not (place.cell / "metrics.json").exists()


def test_a_worker_that_hears_nothing_ends_its_commands(tmp_path: Path) -> None:
    """As when the network fails, and nobody closes the connection."""
    mark = f"BURSTLAB_CELL={tmp_path.name}-silence"
    patient = f"require '{DIRECTORY}/worker.rb'; Worker::SILENCE_S = 1; "
    words = ["ruby", "-W0", "-e", f"{patient}Worker.new($stdin, $stdout).serve"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as worker:  # type: ignore[call-overload]
        assert worker.stdin and worker.stdout
        hello = {"directory": str(tmp_path), "environment": dict([mark.split("=")])}
        order = {"id": 1, "command": ["sh", "-c", "touch runs; exec sleep 600"]}
        worker.stdin.write(f"{json.dumps(hello)}\n{json.dumps(order)}\n")
        worker.stdin.flush()
        until((tmp_path / "runs").exists, "the command runs")
        assert worker.wait(20) == 1
    assert marked(mark) == []


def test_a_host_that_does_not_answer_is_named(place: Workplace, ssh: str) -> None:
    done = place.run("--remote", "ssh", **hosts(place, ssh, f"{HERE}\nnode02.invalid\n"))
    assert done.returncode == 1
    assert "node02.invalid: the connection is lost" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "lines", "told"),
    [
        (("--remote", "rsh"), HERE, "usage: run [--engine rake|pwrake] [--remote ssh|srun]"),
        (("--remote",), HERE, "usage: run"),
        (("--remote", "ssh"), "node02 many", "node02: give `host` or `host cores`"),
        (("--engine", "pwrake", "--remote", "srun"), HERE, "Pwrake reaches hosts by ssh only"),
    ],
)
def test_what_is_wrong_is_told(
    place: Workplace, ssh: str, arguments: tuple[str, ...], lines: str, told: str
) -> None:
    done = place.run(*arguments, **hosts(place, ssh, f"{lines}\n"))
    assert done.returncode == 1
    assert done.stderr.startswith("montage: ") and told in done.stderr


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in tasks for child in path.read_text().split()]


def name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
