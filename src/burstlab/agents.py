"""The agents of a cell, seen from the host that runs it: one connection, broadcast out,
lines in."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from burstlab.errors import NodeError
from burstlab.launch import HOST, launcher
from burstlab.lease import Lease
from burstlab.nodes import Host

START_S = 60.0  # a login on every host, first Python start from a shared file system included
CALL_S = 600.0
HEALTH_S = 20.0
CLOSE_S = 30.0


class AgentNodes:
    """Hosts reached through a launcher; see burstlab.nodes.Nodes for what it offers."""

    def __init__(
        self,
        names: Sequence[str],
        directory: Path,
        launch: str,
        launch_options: Sequence[str],
        lease: Lease,
        cell_dir: Path,
    ) -> None:
        """Starts the agents. Raises NodeError naming the first host that does not answer."""
        self.hosts = tuple(Host(name, directory) for name in names)
        self.directory = directory
        self._number = 0
        self._pending = b""
        self._noise: list[str] = []
        self._log = (cell_dir / "agents.log").open("wb")
        argv = launcher(launch)(names, _agent_command(launch), launch_options)
        self._process = lease.spawn(argv, "agents", subprocess.PIPE, stdin=subprocess.PIPE,
                                    errors=self._log)  # fmt: skip
        hello = {
            "id": lease.id,
            "hosts": list(names),
            "directory": str(directory),
            "cell_dir": str(cell_dir),
        }
        self._send({"hello": hello})
        answers = self._collect(lambda answer: "ready" in answer, START_S, "did not answer")
        self.problems = [f"{h}: {p}" for h, a in answers.items() for p in a.get("problems", [])]

    def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        """See Nodes."""
        self._number += 1
        self._send({"call": action, "arguments": arguments, "number": self._number})
        return self._results(CALL_S, f"did not finish {action}")

    def deaths(self) -> list[str]:
        """Daemons that died on any host, and hosts that no longer answer."""
        self._number += 1
        try:
            self._send({"health": True, "number": self._number})
            found = self._results(HEALTH_S, "no longer answers")
        except NodeError as error:
            return [str(error)]
        return [f"{host}: {death}" for host, deaths in found.items() for death in deaths]

    def close(self) -> list[str]:
        """See Nodes; an agent that does not answer cleans up when its stdin ends."""
        problems = []
        try:
            self._send({"close": True})
            answers = self._collect(lambda answer: "closed" in answer, CLOSE_S, "did not close")
            problems = [f"{h}: {p}" for h, a in answers.items() for p in a["problems"]]
        except NodeError as error:
            problems = [str(error)]
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.terminate()
        self._log.close()
        return problems

    def _results(self, limit_s: float, failure: str) -> dict[str, Any]:
        number = self._number
        answers = self._collect(lambda answer: answer.get("number") == number, limit_s, failure)
        return {host: answer["result"] for host, answer in answers.items()}

    def _send(self, message: dict[str, Any]) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise NodeError(self.hosts[0].name, f"lost: {self._last_words()}") from error

    def _collect(self, wanted: Any, limit_s: float, failure: str) -> dict[str, dict[str, Any]]:
        """One wanted answer from each host. Raises NodeError for the first that fails or is
        silent."""
        answers: dict[str, dict[str, Any]] = {}
        deadline = time.monotonic() + limit_s
        while len(answers) < len(self.hosts):
            missing = next(h.name for h in self.hosts if h.name not in answers)
            for answer in self._read(deadline, missing, failure):
                if "gone" in answer:
                    raise NodeError(answer["host"], f"{answer['gone']}: {self._last_words()}")
                if "error" in answer:
                    raise NodeError(answer["host"], answer["error"])
                if wanted(answer):
                    answers[answer["host"]] = answer
        return answers

    def _read(self, deadline: float, missing: str, failure: str) -> list[dict[str, Any]]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise NodeError(missing, f"{failure} in time: {self._last_words()}")
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            raise NodeError(missing, f"{failure}: {self._last_words()}")
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        return [answer for line in lines if (answer := self._parse(line)) is not None]

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        """An agent's answer; what a login prints besides is kept for the error message."""
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and "host" in answer:
            return answer
        self._noise.append(line.decode(errors="replace"))
        return None

    def _last_words(self) -> str:
        self._log.flush()
        said = Path(self._log.name).read_text(errors="replace").splitlines() or self._noise
        return said[-1] if said else "it said nothing"


def _agent_command(launch: str) -> list[str]:
    """The same Python on every host: an environment on a file system that all of them see."""
    return [sys.executable, "-m", "burstlab.agent", *([HOST] if launch == "ssh" else [])]
