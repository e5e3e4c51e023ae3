"""Ranks that ask agents: an agent for each node, and all nodes are this machine."""

import json
import secrets
import select
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

READY_S = 60
END_S = 60  # for an agent: what it has read is written


def counters(
    specification: dict[str, Any],
    local: Path,
    ranks: int,
    limit_s: float,
    nodes: int = 1,
    peers: bool = False,
    options: Sequence[str] = (),
) -> Counter[str]:
    """The agents' counters, added up, after ``ranks`` have read as epochs.py is told, each its
    part of a global shuffle at an agent by turns. ``peers``: the agents read for one another.
    However this ends, none of them runs on.
    """
    shutil.rmtree(local, ignore_errors=True)
    homes = [local / f"node{number}" for number in range(nodes)]
    for home in homes:
        home.mkdir(mode=0o700, parents=True)
    script = str(Path(__file__).with_name("epochs.py"))
    with ExitStack() as stack:
        agents = [
            stack.enter_context(running(_agent(specification, home, peers, options)))
            for home in homes
        ]
        _introduce(agents, homes, peers)
        loops = []
        for rank in range(ranks):
            asked = {"options": {"agent": str(_socket(homes[rank % nodes]))}, "rank": (rank, ranks)}
            words = [sys.executable, script, json.dumps({**specification, **asked})]
            loops.append(stack.enter_context(running(words)))
        if any([_ended(loop, limit_s) for loop in loops]):
            sys.exit(f"{ranks} ranks: one of them failed")
    told_by = [json.loads(_report(home).read_text()) for home in homes]
    return sum((Counter(_numbers(found)) for found in told_by), Counter())


@contextmanager
def running(words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A process, which is ended in order, or is killed where it takes too long for that."""
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _ended(loop: subprocess.Popen[str], limit_s: float) -> int:
    """Its exit status."""
    try:
        loop.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        sys.exit(f"a rank did not end within {limit_s} s")
    return loop.returncode


def _introduce(agents: Sequence[subprocess.Popen[str]], homes: Sequence[Path], peers: bool) -> None:
    """Return when all agents are ready; peers have to hear of each other before."""
    if peers:
        lines = [line(agent, "listening") for agent in agents]
        addresses = {home.name: said.split()[1] for home, said in zip(homes, lines, strict=True)}
        told = json.dumps({"addresses": addresses, "key": secrets.token_hex(32)})
        for agent in agents:
            assert agent.stdin is not None
            agent.stdin.write(f"{told}\n")
            agent.stdin.flush()
    for agent in agents:
        line(agent, "ready")


def _agent(
    specification: dict[str, Any], home: Path, peers: bool, options: Sequence[str]
) -> list[str]:
    """Its command; it ends with this process, however that ends."""
    words = [sys.executable, "-m", "burstio.agent", "--while-stdin"]
    words += ["--socket", str(_socket(home))]
    words += ["--root", specification["root"], "--files", specification["list"]]
    words += ["--cache", str(home / "cache"), "--statistics", str(_report(home)), *options]
    return words + (["--peers", home.name, "127.0.0.1"] if peers else [])


def line(agent: subprocess.Popen[str], wanted: str) -> str:
    """The next line that it says, which begins with this word."""
    assert agent.stdout is not None
    if not select.select([agent.stdout], [], [], READY_S)[0]:
        sys.exit(f"an agent has not said {wanted!r} within {READY_S} s")
    line = agent.stdout.readline()
    if not line.startswith(wanted):
        sys.exit(f"an agent said {line!r} where {wanted!r} was expected")
    return line


def _numbers(found: dict[str, Any]) -> dict[str, int]:
    return {name: value for name, value in found.items() if isinstance(value, int)}


def _socket(home: Path) -> Path:
    return home / "socket"


def _report(home: Path) -> Path:
    return home / "report.json"
