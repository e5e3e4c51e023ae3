"""One step of the probe on every host of the cell, through the launcher that the cell uses."""

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.errors import BurstlabError, NodeError
from burstlab.launch import HOST, launcher

STEP_S = 600.0
OWN_NAME = ("srun",)  # launchers that put no host name into a word; their hosts know theirs

Answers = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Hosts:
    """The hosts of a cell as a workload is told of them."""

    names: tuple[str, ...]
    launch: str
    options: tuple[str, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Hosts":
        """From the variables of a cell. Virtual nodes are called as in the record."""
        names = Path(environment["BURSTLAB_HOSTFILE"]).read_text().split()
        if set(names) == {"localhost"}:
            names = [f"node{number:02}" for number in range(1, len(names) + 1)]
        options = shlex.split(environment["BURSTLAB_LAUNCH_OPTIONS"])
        return cls(tuple(names), environment["BURSTLAB_LAUNCH"], tuple(options))

    @property
    def here(self) -> bool:
        """Whether all of them are this machine."""
        return self.launch == "local"

    def do(self, step: str, asked: Mapping[str, Any]) -> Answers:
        """The answers by host. Raises NodeError for the first host that has none."""
        words = {**asked, "step": step, "hosts": self.names}
        commands = [_command(name, words) for name in self.names]
        if not self.here:
            host = "" if self.launch in OWN_NAME else HOST
            commands = [launcher(self.launch)(self.names, _command(host, words), self.options)]
        answers, said = _lines(commands, step)
        for name in self.names:
            told = answers.get(name, {"error": f"no answer to {step}: {said}"})
            if "gone" in told:
                raise NodeError(name, f"{told['gone']} ended with status {told['status']}: {said}")
            if "error" in told:
                raise NodeError(name, told["error"])
        return answers


def _command(host: str, words: Mapping[str, Any]) -> list[str]:
    return [sys.executable, "-m", "burstlab.probe.node", host, json.dumps(words)]


def _lines(commands: Sequence[Sequence[str]], step: str) -> tuple[Answers, str]:
    """The first answer of each host, and the last of what else was said."""
    running = [
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]  # fmt: skip
    answers: Answers = {}
    said = "it said nothing"
    for one in running:
        try:
            lines = one.communicate(timeout=STEP_S)[0].splitlines()
        except subprocess.TimeoutExpired:
            one.kill()
            raise BurstlabError(f"the step {step} did not end within {STEP_S:.0f} s") from None
        for line in lines:
            if line.startswith('{"host"'):
                answer = json.loads(line)
                answers.setdefault(answer["host"], answer)
            elif line.strip():
                said = line.strip()
    return answers, said
