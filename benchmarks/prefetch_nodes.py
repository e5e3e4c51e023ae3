"""Ranks that ask agents: an agent for each node, and all nodes are this machine."""

import json
import secrets
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any


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
    """
    shutil.rmtree(local, ignore_errors=True)
    homes = [local / f"node{number}" for number in range(nodes)]
    for home in homes:
        home.mkdir(mode=0o700, parents=True)
    agents = [_begin(specification, home, peers, options) for home in homes]
    lines = [_line(agent) for agent in agents]
    if peers:
        addresses = {home.name: line.split()[1] for home, line in zip(homes, lines, strict=True)}
        told = json.dumps({"addresses": addresses, "key": secrets.token_hex(32)})
        for agent in agents:
            assert agent.stdin is not None
            agent.stdin.write(f"{told}\n")
            agent.stdin.flush()
        lines = [_line(agent) for agent in agents]
    assert lines == nodes * ["ready\n"], lines
    script = str(Path(__file__).with_name("epochs.py"))
    loops = []
    for rank in range(ranks):
        asked = {"options": {"agent": str(_socket(homes[rank % nodes]))}, "rank": (rank, ranks)}
        words = [sys.executable, script, json.dumps({**specification, **asked})]
        loops.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
    if any([loop.wait(limit_s) for loop in loops]):
        sys.exit(f"{ranks} ranks: one of them failed")
    for agent in agents:
        agent.terminate()
    for agent in agents:
        agent.wait(60)
    told_by = [json.loads(_report(home).read_text()) for home in homes]
    return sum((Counter(_numbers(found)) for found in told_by), Counter())


def _begin(
    specification: dict[str, Any], home: Path, peers: bool, options: Sequence[str]
) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "burstio.agent", "--socket", str(_socket(home))]
    words += ["--root", specification["root"], "--files", specification["list"]]
    words += ["--cache", str(home / "cache"), "--statistics", str(_report(home)), *options]
    words += ["--peers", home.name, "127.0.0.1"] if peers else []
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _line(agent: subprocess.Popen[str]) -> str:
    assert agent.stdout is not None
    return agent.stdout.readline()


def _numbers(found: dict[str, Any]) -> dict[str, int]:
    return {name: value for name, value in found.items() if isinstance(value, int)}


def _socket(home: Path) -> Path:
    return home / "socket"


def _report(home: Path) -> Path:
    return home / "report.json"
