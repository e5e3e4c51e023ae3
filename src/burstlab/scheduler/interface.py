"""What is told to a scheduler and what it answers, the same for all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from burstlab.errors import BurstlabError

RUNNING = "running"  # queued, running, ending: not over
SUCCESS = "success"
FAILED = "failed"
STUCK = "stuck"  # queued, and the scheduler says that it will never start


class SchedulerError(BurstlabError):
    """A scheduler's command did not do or tell what it was asked for."""


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    stdout: str
    stderr: str
    status: int

    def words(self) -> str:
        """What it said in one line, for error messages."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        said = "; ".join(line.strip() for line in lines[:4] if line.strip())
        return said or f"exit status {self.status}"


@dataclass(frozen=True)
class Submission:
    """A job to be submitted."""

    name: str  # 15 characters, the same for every submission of one cell
    nodes: int
    runtime_min: int
    log: Path
    comment: str = ""  # the file that the job makes
    words: tuple[str, ...] = ()  # the site's own


@dataclass(frozen=True)
class JobState:
    """What a scheduler says of one job.

    ``reason`` is empty, or why it failed, or why it waits; ``outer`` says that the reason lies
    outside of the job: it was cancelled, ran out of time, lost its node.
    """

    phase: str
    reason: str = ""
    outer: bool = False
    hosts: tuple[str, ...] = ()


def no_answer(command: str, answer: Answer) -> SchedulerError:
    """The error to raise when a command did not do or tell what it should."""
    return SchedulerError(f"{command}: {answer.words().removeprefix(f'{command}: ')}")


class Scheduler(Protocol):
    """The functions of ``burstlab.scheduler.slurm`` and the others.

    Functions that read an answer raise SchedulerError when it is none: the scheduler did not
    answer, so nothing is known of any job. A job it does not know is absent from the result.
    """

    def submission(self, job: Submission, script: Path) -> list[str]:
        """The command that submits."""

    def submitted(self, answer: Answer) -> str:
        """The job's id, from what the submission printed."""

    def query(self, ids: Iterable[str]) -> list[str]:
        """The command that asks for all of ``ids`` at once."""

    def states(self, answer: Answer) -> Mapping[str, JobState]:
        """By id, from the answer to ``query``; other jobs may be among them."""

    def history(self, ids: Iterable[str]) -> list[list[str]]:
        """Commands that ask for jobs which ``query`` did not tell of; none if there are none."""

    def past(self, answer: Answer) -> Mapping[str, JobState]:
        """By id, from the answer to a command of ``history``."""

    def named(self, name: str) -> list[str]:
        """The command that asks for jobs with a name."""

    def ids_named(self, answer: Answer, name: str) -> list[str]:
        """Jobs with exactly this name that are not over, from the answer to ``named``."""

    def cancellation(self, ids: Iterable[str]) -> list[str]:
        """The command that cancels jobs."""


def clock(minutes: int) -> str:
    """H:MM:SS, as schedulers want a time limit."""
    return f"{minutes // 60}:{minutes % 60:02}:00"


def exited(status: int) -> JobState:
    """Of a job that ended by itself."""
    if status == 0:
        return JobState(SUCCESS)
    return JobState(FAILED, f"exit status {status}")
