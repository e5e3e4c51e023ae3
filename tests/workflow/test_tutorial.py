"""docs/tutorial.md tells the truth: its files are written and its commands typed, in order."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.workflow.checkout import ROOT, Checkout, Run

pytestmark = [pytest.mark.slow, pytest.mark.requires("fuse", "montage")]
STEPS = re.compile(
    r"`(?P<file>[\w./]+)`:\n\n```yaml\n(?P<text>.*?)```|^\$ (?P<command>[^\n]*)$",
    re.DOTALL | re.MULTILINE,
)
FIGURE = "results/figures/mine/demo/sawada-1.csv"


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, list[tuple[str, Run]]]:
    """The checkout after the tutorial, and what each of its commands said."""
    checkout = Checkout.make(tmp_path_factory.mktemp("tutorial"))
    said = []
    for step in STEPS.finditer((ROOT / "docs/tutorial.md").read_text()):
        if step["file"]:
            with (checkout.root / step["file"]).open("a") as file:
                file.write(f"\n{step['text']}")
            continue
        run = checkout.shell(step["command"])
        assert run.status == 0, f"{step['command']}\n{run.text}"
        said.append((step["command"], run))
    return checkout, said


def runs(said: list[tuple[str, Run]], command: str) -> list[Run]:
    """What the calls of one command said."""
    return [run for typed, run in said if typed == command]


def medians(text: str) -> dict[str, float]:
    """Workflow time [s] of each series, of the CSV beside the figure."""
    rows = csv.DictReader(text.splitlines())
    return {row["series"]: float(row["value_s"]) for row in rows if row["kind"] == "median"}


def test_a_cell_by_hand_leaves_a_record(followed: tuple[Checkout, list[tuple[str, Run]]]) -> None:
    for storage in ("pfs", "local"):
        record = json.loads((followed[0].root / f"results/hand/{storage}/record.json").read_text())
        assert record["status"] == "ok"


def test_what_runs_when_is_as_told(followed: tuple[Checkout, list[tuple[str, Run]]]) -> None:
    first, after_the_change, again = runs(followed[1], "snakemake --profile local mine")
    assert first.jobs["montage"] == 6
    assert after_the_change.jobs["montage"] == 6
    assert again.nothing_to_do


def test_the_figure_shows_the_slower_file_system(
    followed: tuple[Checkout, list[tuple[str, Run]]],
) -> None:
    before, after = (medians(run.text) for run in runs(followed[1], f"cat {FIGURE}"))
    assert set(before) == set(after) and len(before) == 2
    emulated = next(series for series in before if "emulated" in series)
    assert before[emulated] != after[emulated], "it was not drawn again"


def test_the_report_is_one_page(followed: tuple[Checkout, list[tuple[str, Run]]]) -> None:
    page: Path = followed[0].root / "mine.html"
    assert page.read_text().startswith("<!doctype html>")
