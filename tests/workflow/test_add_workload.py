"""Adding a workload is what docs/add-a-workload.md says: this test follows it to the letter."""

import json
import re

import pytest

from tests.workflow.checkout import ROOT, Checkout

pytestmark = pytest.mark.slow
GUIDE = (ROOT / "docs/add-a-workload.md").read_text()
FILES = re.findall(r"`([\w./]+)`:\n\n```\w*\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = re.findall(r"^\$ (.*)$", GUIDE, re.MULTILINE)
SEAMS = ("workflows/", "envs/", "config/experiments/")


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, list[str]]:
    """The checkout after the guide, and what its commands printed."""
    checkout = Checkout.make(tmp_path_factory.mktemp("guide"))
    for name, text in FILES:
        path = checkout.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        assert not path.exists(), f"{name} is not new"
        path.write_text(text)
    said = []
    for command in COMMANDS:
        run = checkout.shell(command)
        assert run.status == 0, f"{command}\n{run.text}"
        said.append(run.text)
    return checkout, said


def test_it_names_only_the_three_places() -> None:
    assert len(FILES) == 5
    assert all(name.startswith(SEAMS) for name, _ in FILES)
    assert sum(len(text.splitlines()) for _, text in FILES) <= 30


@pytest.mark.requires("fuse")
def test_every_cell_has_its_record(followed: tuple[Checkout, list[str]]) -> None:
    results = followed[0].root / "results/sorting/demo/sort"
    records = [json.loads(path.read_text()) for path in results.rglob("record.json")]
    assert len(records) == 8
    assert {record["status"] for record in records} == {"ok"}
    assert {record["cell"]["parameters"]["lines"] for record in records} == {"100", "100000"}
    assert all(record["metrics"][0]["name"] == "sort_time" for record in records)


@pytest.mark.requires("fuse")
def test_its_last_command_shows_the_number(followed: tuple[Checkout, list[str]]) -> None:
    assert json.loads(followed[1][-1])[0]["unit"] == "s"


@pytest.mark.requires("fuse")
def test_a_second_run_does_nothing(followed: tuple[Checkout, list[str]]) -> None:
    assert followed[0].shell(COMMANDS[1]).nothing_to_do
