"""`make lab-demo`, few tiles on few nodes: an ordinary user's campaign in all three ways."""

import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lab.demo import RESULTS, WAYS
from tests.lab.cluster import REPOSITORY, host_traces
from tests.workflow.checkout import Checkout

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "montage", "gfarm", "ssh"),
    pytest.mark.slow,
    pytest.mark.timeout(900),  # of the fixture: twenty cells and nine figures
]
SMALL = "{columns: 3, rows: 2, tile_width: 128, tile_height: 256, stars_per_tile: 25}"
LIMIT_S = 800


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, str]:
    """A checkout whose lab scale is one repeat on 1 and 2 nodes, and what the demo said."""
    checkout = Checkout.make(tmp_path_factory.mktemp("demo"))
    experiment = checkout.root / "config/experiments/sawada.yaml"
    before_it, lab_scale = experiment.read_text().split("  lab:\n", 1)
    for old, new in (("repeats: 3", "repeats: 1"), ("nodes: [1, 2, 4]", "nodes: [1, 2]")):
        lab_scale = lab_scale.replace(old, new, 1)
    experiment.write_text(f"{before_it}  lab:\n{lab_scale}")
    checkout.change(
        "config/datasets.yaml", "synthetic: {columns: 5, rows: 2}", f"synthetic: {SMALL}"
    )
    before = host_traces()
    running = start(checkout)
    try:
        said, _ = running.communicate(timeout=LIMIT_S)
    finally:
        running.terminate()  # it takes its lab down
        running.wait(60)
    assert running.returncode == 0, said
    assert host_traces() == before
    return checkout, said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sawadda", "lab"), "there is no experiment 'sawadda', did you mean 'sawada'?"),
        (("sawada", "labs"), "sawada.yaml has no scale 'labs', did you mean 'lab'?"),
    ],
)
def test_what_does_not_exist_is_told_before_there_is_a_lab(
    words: tuple[str, str], told: str
) -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "lab.demo", *words], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert demo.returncode == 1 and told in demo.stderr
    assert not demo.stdout


def start(checkout: Checkout) -> subprocess.Popen[str]:
    environment = {name: text for name, text in os.environ.items() if name != "BURSTLAB_2MASS"}
    return subprocess.Popen(
        [sys.executable, "-m", "lab.demo", "--checkout", checkout.root],
        cwd=REPOSITORY,
        env={**environment, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def records(demo: tuple[Checkout, str], way: str) -> list[dict[str, Any]]:
    found = sorted((demo[0].root / RESULTS / way).rglob("record.json"))
    return [json.loads(path.read_text()) for path in found]


@pytest.mark.parametrize("way", WAYS)
def test_every_cell_has_its_record(demo: tuple[Checkout, str], way: str) -> None:
    ends = Counter(
        (one["cell"]["storage"], one["cell"]["nodes"], one["status"]) for one in records(demo, way)
    )
    assert ends == Counter(
        (storage, nodes, "skipped" if (storage, nodes) == ("nodelocal", 2) else "ok")
        for storage in ("pfs", "nodelocal", "gfarm")
        for nodes in (1, 2)
    )


@pytest.mark.parametrize(
    ("way", "remote", "hosts_from"),
    [("jobs", "srun", "Slurm"), ("allocation", "srun", "Slurm"), ("ssh", "ssh", "PBS_NODEFILE")],
)
def test_two_nodes_share_the_commands(
    demo: tuple[Checkout, str], way: str, remote: str, hosts_from: str
) -> None:
    both = [one for one in records(demo, way) if one["cell"]["nodes"] == 2]
    for one in (one for one in both if one["status"] == "ok"):
        assert one["hosts"] == ["node01", "node02"]
        assert one["workload_facts"]["engine"].startswith("rake 13")
        assert one["workload_facts"]["remote"] == remote
        assert one["provenance"]["allocation"] == hosts_from
        cell = demo[0].root / RESULTS / way / "sawada/lab/montage"
        storage = f"{one['cell']['storage']}-{one['cell']['staging']}"
        rows = (cell / storage / "n2/default/r1/operations.csv").read_text().splitlines()
        hosts = Counter(row.split(",")[3] for row in rows[1:])
        assert set(hosts) == {"node01", "node02"} and min(hosts.values()) > len(rows) / 4


@pytest.mark.parametrize("way", WAYS)
def test_one_seed_of_the_order_is_in_all_records(demo: tuple[Checkout, str], way: str) -> None:
    [seed] = {one["provenance"]["order_seed"] for one in records(demo, way)}
    assert f"Order of cells: interleaved, seed {seed}" in demo[1]


def test_one_allocation_holds_nested_node_sets_one_cell_at_a_time(
    demo: tuple[Checkout, str],
) -> None:
    inside = records(demo, "allocation")
    ran = [one for one in inside if one["status"] == "ok"]
    assert {tuple(one["hosts"]) for one in ran} == {("node01",), ("node01", "node02")}
    assert len({one["provenance"]["scheduler"]["job"] for one in ran}) == 1
    spans = sorted((one["spans"][0]["start_s"], end(one)) for one in ran)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


@pytest.mark.parametrize("way", WAYS)
def test_figures_and_report_tell_what_was_skipped(demo: tuple[Checkout, str], way: str) -> None:
    place = demo[0].root / RESULTS / way
    figures = place / "figures/sawada/lab"
    for number in (1, 2, 3):
        assert (figures / f"sawada-{number}.svg").stat().st_size > 10_000
    numbers = (figures / "sawada-1.csv").read_text()
    assert "skipped" in numbers and "nodelocal is separate on each" in numbers
    assert "2 nodes" in (figures / "sawada-2.svg").read_text()
    assert "sawada-1" in (place / "report.html").read_text()
    assert f"lab-demo: {way:10} {place / 'report.html'}" in demo[1]


def test_told_to_end_it_takes_its_lab_down(tmp_path: Path) -> None:
    before = host_traces()
    running = start(Checkout.make(tmp_path))
    assert running.stdout
    with running.stdout as said:
        place = Path(re.findall(r"/\S+/lab\b", said.readline())[0])
        assert place.parent.is_dir()
        for line in said:
            if "localrule dataset:" in line:
                running.terminate()
    assert running.wait(60) == 1
    assert not place.parent.exists() and host_traces() == before


def end(record: dict[str, Any]) -> float:
    return float(max(span["start_s"] + span["elapsed_s"] for span in record["spans"]))
