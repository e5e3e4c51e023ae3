"""What burstlab may expect of a launcher, checked on real hosts.

A program, so that it runs on the first host of a job: ``python -m tests.launch.conformance CHECK
LAUNCH HOST ...``. Exit status 0: it does; else the assertion that failed is told.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from burstlab import agents
from burstlab.agents import AgentNodes
from burstlab.errors import NodeError
from burstlab.launch import HOST, launcher
from burstlab.lease import Lease
from burstlab.nodes import Nodes, VirtualNodes

LOCAL = "local"  # no launcher: the cell's nodes are directories of its own host
LIMIT_S = 60.0
SHORT_S = 3.0  # instead of the minutes that burstlab waits
START_S = 20.0
SCRATCH = Path("/local")
ODD = ("", "two words", "it's", 'say "x"', "$HOME `id` $(id)", "*;&|<>()", "back\\slash", "-dash",
       "#x", "~", "!!", "naïve", "a=b", "100%", "%s", "%%", "line\nbreak", "tab\there")  # fmt: skip
ECHO = """\
import json, os, sys
told = {"on": os.uname().nodename, "words": sys.argv[1:], "stdin": sys.stdin.read()}
print(json.dumps(told), flush=True)
"""

CHECKS: dict[str, Callable[[str, list[str]], None]] = {}
Check = Callable[[str, list[str]], None]


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


# --- the command alone ---


@check
def every_host_runs_the_command_once_and_its_words_arrive_unchanged(
    launch: str, hosts: list[str]
) -> None:
    done = run(launch, hosts, [sys.executable, "-c", ECHO, *ODD], "one line\nand a second\n")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert sorted(one["on"] for one in told) == hosts
    for one in told:
        assert one["words"] == list(ODD)
        assert one["stdin"] == "one line\nand a second\n"


@check
def a_command_that_fails_on_one_host_is_told_with_its_host(launch: str, hosts: list[str]) -> None:
    script = f"uname -n; test $(uname -n) != {hosts[1]}"
    done = run(launch, hosts, ["sh", "-c", script])
    said = done.stdout + done.stderr
    assert done.returncode != 0
    printed = [line for line in done.stdout.splitlines() if line in hosts]
    assert sorted(printed) == hosts, "the others have run, and are heard"
    assert hosts[1] in said.replace(f"{hosts[1]}\n", "", 1)


@check
def a_word_stands_for_the_host_where_the_launcher_knows_its_name(
    launch: str, hosts: list[str]
) -> None:
    done = run(launch, hosts, ["sh", "-c", 'echo "$1 $(uname -n)"', "sh", HOST])
    expected = [f"{HOST} {host}" if launch == "srun" else f"{host} {host}" for host in hosts]
    assert sorted(done.stdout.splitlines()) == expected


# --- what a cell makes of it: its nodes ---


@check
def every_host_acts_once_and_answers_by_its_name(launch: str, hosts: list[str]) -> None:
    with nodes(launch, hosts) as reached:
        acted = f"{SCRATCH}/acted"
        found = act(reached, f"uname -n >>{acted}")
        assert sorted(found) == [host.name for host in reached.hosts] == hosts
        if launch == LOCAL:
            assert Path(acted).read_text() == f"{os.uname().nodename}\n" * len(hosts)
            Path(acted).unlink()
        else:
            act(reached, f'test "$(cat {acted})" = "$(uname -n)" && rm {acted}')


@check
def long_answers_of_all_hosts_at_once_come_whole(launch: str, hosts: list[str]) -> None:
    agents.CALL_S = START_S
    with nodes(launch, hosts) as reached:
        for size in (900, 1100, 5_000, 60_000):
            found = act(reached, f": {'é' * size}")
            assert sorted(found) == hosts
            assert all("é" * size in one["method"] for one in found.values())


@check
def arguments_and_directories_with_odd_names_arrive(launch: str, hosts: list[str]) -> None:
    with nodes(launch, hosts, """odd 'name' "of" $HOME""") as reached:
        assert "odd 'name'" in str(reached.directory)
        for number, word in enumerate(word for word in ODD if "\n" not in word):
            path = f"{reached.directory}/{number} {word.replace('/', '')}"
            if launch == LOCAL:
                Path(path).mkdir()
            else:
                reached.call("burstlab.staging:make_work_here", path=path)
            act(reached, f"test -d {shlex.quote(path)}")


@check
def the_first_failure_is_told_with_its_host_and_reason(launch: str, hosts: list[str]) -> None:
    with nodes(launch, hosts) as reached:
        failing = hosts[0] if launch == LOCAL else hosts[2]
        name = os.uname().nodename if launch == LOCAL else failing
        script = f'test "$(uname -n)" != {name} || {{ echo "no disk here" >&2; exit 3; }}'
        told = act(reached, script, fails=True)
        assert told.host == failing and "exit status 3: no disk here" in str(told)
        assert sorted(act(reached, "true")) == hosts, "they go on after it"
        later = f'test "$(uname -n)" = {name} || sleep 0.3; exit 3'
        told = act(reached, later, fails=True)
        assert told.host == failing, "and who fails after it does not spoil the end"


@check
def a_host_that_takes_too_long_is_told(launch: str, hosts: list[str]) -> None:
    agents.CALL_S = SHORT_S
    with nodes(launch, hosts, lost=hosts[-1]) as reached:
        script = f"test $(uname -n) != {hosts[-1]} || sleep 600"
        told = act(reached, script, fails=True)
        assert told.host == hosts[-1] and "did not finish" in str(told)


@check
def a_host_that_does_not_answer_is_told(launch: str, hosts: list[str]) -> None:
    """The last host is off."""
    agents.START_S = START_S
    try:
        with nodes(launch, hosts):
            pass
    except NodeError as error:
        assert error.host == hosts[-1], error
    else:
        raise AssertionError("nobody missed it")


def hold(launch: str, hosts: list[str]) -> None:
    """Nodes that work until they are killed; each says in its scratch directory that it does."""
    with nodes(launch, hosts) as reached:
        print("held", flush=True)
        act(reached, "touch /local/at-work; exec sleep 600")


@contextmanager
def nodes(
    launch: str, hosts: list[str], name: str = "conformance", lost: str = ""
) -> Iterator[Nodes]:
    """As a cell reaches its hosts; nothing may be left on this one."""
    lease = Lease.create(f"{name}-{os.urandom(3).hex()}")
    lease.mark()
    directory = SCRATCH / f"burstlab-{lease.id}"
    try:
        if launch == LOCAL:
            reached: Nodes = VirtualNodes(lease.directory(directory), len(hosts), lease)
        else:
            lease.directory(directory)
            reached = AgentNodes(hosts, Path(f"{directory}.node"), launch, (), lease, directory)
        try:
            yield reached
        finally:
            left = [told for told in reached.close() if not lost or lost not in told]
        assert left == []
    finally:
        assert lease.clean() == []
        lease.release()


def act(reached: Nodes, script: str, fails: bool = False) -> dict[str, object] | NodeError:
    """Run a script on every host, by the one action that runs what it is given."""
    command = shlex.join(["sh", "-c", script])
    try:
        found = reached.call("burstlab.cache:enforce", state="cold", data="", drop_caches=command)
    except NodeError as error:
        if not fails:
            raise
        return error
    assert not fails, f"nobody failed: {found}"
    return found


def run(
    launch: str, hosts: list[str], argv: list[str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="burstlab-", dir=SCRATCH) as scratch:
        launched = launcher(launch)(hosts, argv, [], Path(scratch))
        return subprocess.run(
            launched, input=stdin, capture_output=True, text=True, timeout=LIMIT_S
        )


if __name__ == "__main__":
    if sys.argv[1] == hold.__name__:
        hold(sys.argv[2], sys.argv[3:])
    else:
        CHECKS[sys.argv[1]](sys.argv[2], sys.argv[3:])
