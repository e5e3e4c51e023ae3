"""TeraSort as a workload of `burstlab run`: Hadoop's daemons up on the cell's hosts, TeraGen,
TeraSort, TeraValidate on the cell's mount, daemons down; times, tasks and facts into
BURSTLAB_CELL_DIR.
"""

import csv
import json
import os
import signal
import sys
from dataclasses import asdict, fields
from pathlib import Path
from types import FrameType

import history
import jobs
from cluster import Cluster
from failure import Failed
from history import History, Task
from installation import find_hadoop, find_java
from jobs import Job
from parameters import Parameters, Place


class Stopped(SystemExit):
    """By a signal; the exit status says by which."""


def main() -> int:
    """The workload's exit status."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        sort()
    except (Failed, OSError) as error:
        print(f"terasort: {error}", file=sys.stderr)
        directory = Path(os.environ.get("BURSTLAB_CELL_DIR", "."))
        (directory / "failure.txt").write_text(f"{error}\n")
        return 1
    return 0


def sort() -> None:
    """Everything, from the daemons to the reports. Raises Failed."""
    place = Place.of(os.environ)
    parameters = Parameters.of(os.environ, len(place.hosts))
    java, hadoop = find_java(os.environ.get("JAVA_HOME")), find_hadoop()
    with Cluster(place, parameters, java, hadoop).running() as cluster:
        done = [jobs.run(cluster, *phase) for phase in _phases(place, parameters)]
        histories = [history.find(place.mount / "history", job.id) for job in done]
    facts = {
        "hadoop": hadoop.version,
        "java": java.version,
        "rows": str(parameters.rows),
        "checksum": f"{histories[0].counters['CHECKSUM']:x}",
        **{name: str(value) for name, value in asdict(parameters).items()},
    }
    report(place.directory, done, histories, facts)


def report(
    directory: Path, done: list[Job], histories: list[History], facts: dict[str, str]
) -> None:
    """What docs/reference.md names."""
    metrics = [
        {"name": f"{job.program}_time", "value": job.elapsed_s, "unit": "s", "better": "lower"}
        for job in done
    ]
    (directory / "metrics.json").write_text(json.dumps(metrics))
    (directory / "facts.json").write_text(json.dumps(facts))
    with (directory / "operations.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, [field.name for field in fields(Task)])
        rows.writeheader()
        rows.writerows(asdict(task) for one in histories for task in one.tasks)


def _phases(place: Place, parameters: Parameters) -> list[tuple[str, list[str]]]:
    """Programs and their arguments; numbers of maps and reduces are Hadoop's own, 2 and 1."""
    generated, ordered, validated = (
        f"file://{place.mount}/{name}" for name in ("generated", "sorted", "validated")
    )
    return [
        ("teragen", [str(parameters.rows), generated]),
        ("terasort", [generated, ordered]),
        ("teravalidate", [ordered, validated]),
    ]


def _stop(number: int, frame: FrameType | None) -> None:
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    raise Stopped(128 + number)


if __name__ == "__main__":
    sys.exit(main())
