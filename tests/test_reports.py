"""What a workload reports is taken as documented or refused by name."""

import json
from pathlib import Path

import pytest

from burstlab import reports
from burstlab.errors import BurstlabError

GOOD = {"name": "rate", "value": 2.5, "unit": "MB/s", "better": "higher"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"value": "fast"}, "rate: 'fast': a finite number is wanted"),
        ({"value": True}, "rate: True: a finite number is wanted"),
        ({"value": float("nan")}, "rate: nan: a finite number is wanted"),
        ({"value": float("-inf")}, "rate: -inf: a finite number is wanted"),
        ({"better": "faster"}, "rate: better: 'faster': lower or higher is wanted"),
        ({"unit": 1}, "name and unit are text"),
        ({"colour": "red"}, "a mapping of name, value, unit and better is wanted"),
    ],
)
def test_what_is_no_metric_is_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps([GOOD, GOOD | change]))
    with pytest.raises(BurstlabError, match=said) as raised:
        reports.read(tmp_path)
    assert str(raised.value).startswith(str(tmp_path / "metrics.json"))


def test_a_cell_that_reports_nothing_has_no_metrics(tmp_path: Path) -> None:
    assert reports.read(tmp_path) == ({"workload_facts": {}, "metrics": ()}, [])
