"""The agents of a cell, seen from the host that runs it: one connection, broadcast out,
lines in."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from burstlab.allocation import as_allocated
from burstlab.errors import NodeError
from burstlab.launch import HOST, chatter, launcher
from burstlab.lease import MARKER, Lease
from burstlab.nodes import Host
from burstlab.process import this_boot
from burstlab.scheduler.ending import job_of
from burstlab.supervision import ended_how

START_S = 60.0  # a login on every host, first Python start from a shared file system included
CALL_S = 600.0
CLOSE_S = 30.0
ASK_S = 2.0  # between two questions to hosts that are waited for
# An agent's first thread does nothing but answer, so one that is silent for so long is lost, or
# its host is. Slurm ends a job with a dead node after 300 s, or what its SlurmdTimeout is.
SILENT_S = 10.0

# A launcher may not tell that one of its processes has ended while others run. The shell outlives
# a SIGTERM meant for both, for what it ended before its agent would be killed with it.
_TELL_ITS_END = """\
trap : TERM HUP INT
"$0" "$@" && exit 0
status=$? host=${3:-${SLURMD_NODENAME:-$(uname -n)}}
echo '{"host": "'"$host"'", "gone": "its agent", "status": '$status'}'
exit 1"""

Answers = dict[str, dict[str, Any]]


class AgentNodes:
    """Hosts reached through a launcher; see burstlab.nodes.Nodes for what it offers.

    A host that is lost is told once as the reason, and not waited for any more: the others go
    on answering, so that they can be cleaned in order.
    """

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
        self._lost: dict[str, str] = {}
        self._heard: dict[str, float] = {}
        self._number = 0
        self._pending = b""
        self._parts: dict[str, str] = {}  # of answers that are not complete yet, by host
        self._noise: list[str] = []
        self._log = (cell_dir / "agents.log").open("wb")
        self._chatter, self._ended = chatter(launch), f"{launch} has ended"
        # An agent is not of the cell but of a lease of its own: the cell, which ends what carries
        # its mark, is cleaned by it on this very host.
        scratch = lease.directory(f"{directory}.{launch}")
        started = launcher(launch)(names, _agent_command(launch), launch_options, scratch)
        argv = ["env", "-u", MARKER, *started]
        self._process = lease.spawn(argv, "agents", subprocess.PIPE, stdin=subprocess.PIPE,
                                    errors=self._log)  # fmt: skip
        hello = {
            "id": lease.id,
            "hosts": list(names),
            "directory": str(directory),
            "cell_dir": str(cell_dir),
            "job": job_of(os.environ),
            "boot": this_boot(),
        }
        self._send({"hello": hello})
        answers = self._collect(lambda answer: "ready" in answer, START_S, "did not answer in time")
        self.problems = [f"{h}: {p}" for h, a in answers.items() for p in a.get("problems", [])]
        machines = len({answer["machine"] for answer in answers.values()})
        if machines < len(names):
            self.problems.append(
                f"{len(names)} hosts on {machines} machine(s): what one does is load on others"
            )

    def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        """See Nodes."""
        self._number += 1
        self._send({"call": action, "arguments": arguments, "number": self._own_number()})
        return self._results(CALL_S, f"did not finish {action} in time", vigilant=True)

    def deaths(self, patience_s: float = SILENT_S) -> list[str]:
        """See Nodes."""
        found = {}
        if not self._lost:
            self._number += 1
            try:
                self._send({"health": True, "number": self._own_number()})
                found = self._results(patience_s, "no longer answers")
            except NodeError as error:
                self._lost.setdefault(error.host, str(error.args[1]))
        told = [f"{host}: {death}" for host, deaths in found.items() for death in deaths]
        return told + [f"{host}: {why}" for host, why in self._lost.items()]

    def close(self) -> list[str]:
        """See Nodes; an agent that does not answer cleans up when its stdin ends."""
        problems = []
        self._number += 1  # a call that one host failed may still fail on others
        try:
            self._send({"close": True})
            answers = self._collect(
                lambda answer: "closed" in answer, CLOSE_S, "did not close in time"
            )
            problems = [f"{h}: {p}" for h, a in answers.items() for p in a["problems"]]
        except NodeError as error:
            problems = [str(error)]
        if self._process.stdin:
            with suppress(BrokenPipeError):  # what was still to be sent has nobody to read it
                self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.terminate()
        self._log.close()
        return problems

    def _own_number(self) -> str:
        """Not that of a call from a forked child, whose answers may come late."""
        return f"{os.getpid()}.{self._number}"

    def _results(self, limit_s: float, failure: str, vigilant: bool = False) -> dict[str, Any]:
        number = self._own_number()
        answers = self._collect(
            lambda answer: answer.get("number") == number, limit_s, failure, vigilant
        )
        return {host: answer["result"] for host, answer in answers.items()}

    def _send(self, message: dict[str, Any]) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise NodeError(self.hosts[0].name, self._with_words(self._ended)) from error

    def _collect(
        self,
        wanted: Callable[[dict[str, Any]], bool],
        limit_s: float,
        failure: str,
        vigilant: bool = False,
    ) -> Answers:
        """One wanted answer from each host. Raises NodeError for the first that fails or is
        silent; for one that is lost, after the others have answered.

        ``vigilant``: who answers to nothing at all meanwhile is lost.
        """
        answers: Answers = {}
        lost_before, began = set(self._lost), time.monotonic()
        asked = began
        while missing := [h.name for h in self.hosts if h.name not in {*answers, *self._lost}]:
            now = time.monotonic()
            if now > began + limit_s:
                for host in missing:
                    self._lose(host, self._with_words(failure))
                raise NodeError(named := self._named(missing), self._lost[named])
            if vigilant and now > asked + ASK_S:
                self._send({"health": True, "number": "alive"})
                asked = now
                for host in missing:
                    if now - max(began, self._heard.get(host, 0)) > SILENT_S:
                        self._lose(host, "no longer answers")
            for answer in self._read(min(ASK_S, began + limit_s - now), missing):
                names = [host.name for host in self.hosts]
                host = answer["host"] = as_allocated(answer["host"], names)
                self._heard[host] = time.monotonic()
                if "ending" in answer:
                    self._lose(host, "its agent was told to end (SIGTERM)")
                elif "gone" in answer:
                    self._lose(host, self._end_of(answer))
                elif "error" in answer and answer.get("number", "") in ("", self._own_number()):
                    raise NodeError(host, answer["error"])
                elif wanted(answer):
                    answers[host] = answer
            if new := [host for host in self._lost if host not in lost_before]:
                raise NodeError(*self._first_cause(new[0], [*new, *missing]))
        if lost_before:
            host = min(lost_before)
            raise NodeError(host, self._lost[host])
        return answers

    def _end_of(self, answer: dict[str, Any]) -> str:
        """An agent that was killed says nothing more; any other end has a cause in the log."""
        how = ended_how(answer["status"], of_shell=True)
        if how.startswith("killed"):
            return f"{answer['gone']} died ({how})"
        return self._with_words(f"{answer['gone']} ended with {how}")

    def _lose(self, host: str, why: str) -> None:
        self._lost.setdefault(host, why)

    def _read(self, wait_s: float, missing: Sequence[str]) -> list[dict[str, Any]]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        if not select.select([descriptor], [], [], max(wait_s, 0))[0]:
            return []
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            raise NodeError(self._named(missing), self._with_words(self._ended))
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        return [answer for line in lines if (answer := self._parse(line)) is not None]

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        """An agent's answer, when it is complete; what a login prints besides is kept for the
        error message."""
        try:
            answer = json.loads(line)
            if isinstance(answer, dict) and "part" in answer:
                whole = self._parts.pop(answer["host"], "") + answer["part"]
                if answer["more"]:
                    self._parts[answer["host"]] = whole
                    return None
                answer = json.loads(whole)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and "host" in answer:
            return answer
        self._noise.append(line.decode(errors="replace"))
        return None

    def _named(self, missing: Sequence[str]) -> str:
        """The host whose fault it is: a launcher that starts all or none names it in its words."""
        words = self._with_words("").replace(":", " ").split()
        return next((host for host in missing if host in words), missing[0])

    def _first_cause(self, lost: str, unheard: Sequence[str]) -> tuple[str, str]:
        """A launcher that can't start one agent may kill the others, which is told before that."""
        if self._number == 0 and (named := self._named([lost, *unheard])) != lost:
            return named, self._with_words("its agent was not started")
        return lost, self._lost[lost]

    def _with_words(self, what: str) -> str:
        """With the last line of the agents, or else of their login, but for the launcher's
        chatter."""
        self._log.flush()
        said = Path(self._log.name).read_text(errors="replace").splitlines()
        told = [line for line in said if not self._chatter.search(line)] or self._noise
        return f"{what}: {told[-1]}" if told else what


def _agent_command(launch: str) -> list[str]:
    """The same Python on every host: an environment on a file system that all of them see."""
    agent = [sys.executable, "-m", "burstlab.agent", *([HOST] if launch == "ssh" else [])]
    return ["/bin/sh", "-c", _TELL_ITS_END.replace("\n", "; "), *agent]
