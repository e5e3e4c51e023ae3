"""What the job history tells of each task: its host, its time, the bytes it read and wrote.

A .jhist file in JSON is a line `Avro-Json`, a line with the schema, then one event on a line. With
file:// the counters FILE_BYTES_READ and FILE_BYTES_WRITTEN have all a task does: input, spills,
merges, output, checksums beside (`.crc`), as in the paper's figure 8.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from failure import Failed

PATIENCE_S = 120  # until a job's history has been written down
HURRY_S = 20  # where it may never be, for the master itself has failed
NAMES = {"MAP": "map", "REDUCE": "reduce"}


@dataclass(frozen=True)
class Task:
    """One attempt of a task; as a job ends with the first that fails, the only one."""

    operation: str  # such as TeraSort-map
    start_s: float  # Unix time
    elapsed_s: float
    host: str
    status: int
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True)
class History:
    """Of one job."""

    name: str
    tasks: tuple[Task, ...]
    counters: Mapping[str, int]  # of the whole job, by name


def find(directory: Path, job: str) -> History:
    """The history of ``job`` below ``directory``, as soon as it is there. Raises Failed."""
    if text := _text(directory, job, PATIENCE_S):
        return read(text)
    raise Failed(f"{directory}: no history of {job} within {PATIENCE_S} s")


def failures(directory: Path, job: str) -> list[str]:
    """Why tasks of ``job`` failed, as Hadoop's clients tell it; empty where there is no history."""
    _, _, *lines = f"{_text(directory, job, HURRY_S)}\n\n".splitlines()
    failed = ("MAP_ATTEMPT_FAILED", "REDUCE_ATTEMPT_FAILED")
    return [body["error"] for event, body in _events(lines) if event in failed]


def read(text: str) -> History:
    """From the text of a .jhist file. Raises Failed for another format."""
    head, _, *lines = text.splitlines()
    if head.strip() != "Avro-Json":
        raise Failed(f"a job history begins with {head[:20]!r}, not with Avro-Json")
    name, starts, tasks, totals = "", {}, [], {}
    for event, body in _events(lines):
        if event == "JOB_SUBMITTED":
            name = body["jobName"]
        elif event.endswith("_ATTEMPT_STARTED"):
            starts[body["attemptId"]] = body["startTime"]
        elif event in ("MAP_ATTEMPT_FINISHED", "REDUCE_ATTEMPT_FINISHED"):
            tasks.append(_task(name, body, starts[body["attemptId"]]))
        elif event == "JOB_FINISHED":
            totals = _counters(body["totalCounters"])
    return History(name, tuple(tasks), totals)


def _text(directory: Path, job: str, patience_s: float) -> str:
    """The history server moves the file on while it is looked for."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        for path in directory.rglob(f"{job}-*.jhist"):
            with suppress(FileNotFoundError):
                return path.read_text()
        time.sleep(0.1)
    return ""


def _events(lines: list[str]) -> Iterator[tuple[str, Any]]:
    for line in lines:
        if line.strip():
            event = json.loads(line)
            [body] = event["event"].values()
            yield event["type"], body


def _task(job: str, body: Mapping[str, Any], start_ms: int) -> Task:
    counters = _counters(body["counters"])
    return Task(
        operation=f"{job}-{NAMES[body['taskType']]}",
        start_s=start_ms / 1000,
        elapsed_s=(body["finishTime"] - start_ms) / 1000,
        host=body["hostname"],
        status=0,
        read_bytes=counters["FILE_BYTES_READ"],
        written_bytes=counters["FILE_BYTES_WRITTEN"],
    )


def _counters(given: Mapping[str, Any]) -> dict[str, int]:
    return {one["name"]: one["value"] for group in given["groups"] for one in group["counts"]}
