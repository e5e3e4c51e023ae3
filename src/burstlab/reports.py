"""What a workload leaves in its cell directory for the record (docs/reference.md)."""

import json
from pathlib import Path
from typing import Any

from burstlab.errors import CheckError
from burstlab.record import Metric

FAILURE = "failure.txt"
FILES = ("metrics.json", "operations.csv", "facts.json", "issues.json", FAILURE)


def read(directory: Path) -> tuple[dict[str, Any], list[str]]:
    """Fields of the record and validity issues; whatever is not there is left out.

    Raises CheckError naming the file that is not as documented.
    """
    facts: dict[str, Any] = {"workload_facts": _read(directory / "facts.json", dict) or {}}
    metrics = directory / "metrics.json"
    facts["metrics"] = tuple(_metric(metrics, given) for given in _read(metrics, list) or [])
    if (directory / "operations.csv").exists():
        facts["operations"] = "operations.csv"
    return facts, [str(issue) for issue in _read(directory / "issues.json", list) or []]


def failure(directory: Path) -> str:
    """Why the workload failed in its own words: the first line of what it left, if it did."""
    path = directory / FAILURE
    lines = path.read_text(errors="replace").split("\n") if path.exists() else [""]
    return lines[0].strip()


def _metric(path: Path, given: Any) -> Metric:
    """What is no metric now would be a figure that can't be drawn later."""
    wanted = "name, value, unit and better"
    if not isinstance(given, dict) or sorted(given) != ["better", "name", "unit", "value"]:
        raise CheckError(f"{path}: {given!r}: a mapping of {wanted} is wanted")
    if not all(isinstance(given[key], str) for key in ("name", "unit")):
        raise CheckError(f"{path}: {given!r}: name and unit are text")
    value = given["value"]
    if type(value) not in (int, float) or value - value != 0:  # neither infinite nor NaN
        raise CheckError(f"{path}: {given['name']}: {value!r}: a finite number is wanted")
    if given["better"] not in ("lower", "higher"):
        raise CheckError(
            f"{path}: {given['name']}: better: {given['better']!r}: lower or higher is wanted"
        )
    return Metric(**given)


def _read(path: Path, kind: type) -> Any:
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_text())
    except ValueError as error:
        raise CheckError(f"{path}: no JSON {kind.__name__}: {error}") from error
    if not isinstance(value, kind):
        raise CheckError(f"{path}: {value!r:.60}: a JSON {kind.__name__} is wanted")
    return value
