"""What a workload leaves in its cell directory for the record (docs/reference.md)."""

import json
from pathlib import Path
from typing import Any

from burstlab.errors import BurstlabError
from burstlab.record import Metric

FILES = ("metrics.json", "operations.csv", "facts.json", "issues.json")


def read(directory: Path) -> tuple[dict[str, Any], list[str]]:
    """Fields of the record and validity issues; whatever is not there is left out.

    Raises BurstlabError naming the file that is not as documented.
    """
    facts: dict[str, Any] = {"workload_facts": _read(directory / "facts.json", dict) or {}}
    metrics = _read(directory / "metrics.json", list)
    try:
        facts["metrics"] = tuple(Metric(**metric) for metric in metrics or [])
    except TypeError as error:
        raise BurstlabError(f"{directory / 'metrics.json'}: {error}") from error
    if (directory / "operations.csv").exists():
        facts["operations"] = "operations.csv"
    return facts, _read(directory / "issues.json", list) or []


def _read(path: Path, kind: type) -> Any:
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_text())
    except ValueError as error:
        raise BurstlabError(f"{path}: not JSON: {error}") from error
    if not isinstance(value, kind):
        raise BurstlabError(f"{path}: a JSON {kind.__name__} is wanted")
    return value
