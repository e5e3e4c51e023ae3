"""Jobs on a real Grid Engine: however one ends, Snakemake and the record are told how."""

from collections.abc import Iterator

import pytest

from tests.lab.cluster import Cluster
from tests.polling import until
from tests.scheduler.workflow import Ends, Workflow, finish

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "lab-gridengine", "ssh"),
    pytest.mark.slow,
]
FOREVER = "sleep 600"


@pytest.fixture(scope="module")
def ends() -> Iterator[Ends]:
    """Four cells in one run of Snakemake, each with another end; and what Snakemake said."""
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "3", "--cores", "3", "--scheduler", "gridengine")
        flow = Workflow(cluster, "ends", scheduler="gridengine", submit='[-pe, nodes, "{nodes}"]')
        commands = {"gone-1": FOREVER, "lost-1": FOREVER, "bad-1": "exit 3", "good-2": "true"}
        cells = {name.split("-")[0]: flow.cell(name, text) for name, text in commands.items()}
        driver = flow.snakemake(cells.values())
        for name in ("gone", "lost"):
            flow.await_job(cells[name])
            flow.await_run(cells[name])
        flow.run("qdel", flow.await_job(cells["gone"]))
        for name in ("gone", "bad", "good"):
            until(lambda name=name: flow.job(cells[name])["verdict"], f"the end of {name}")
        job = flow.root / ".burstlab/jobs" / str(flow.job(cells["lost"])["name"])
        node = (job / "1.start").read_text().split("nodes ")[1].split()[0]
        cluster.must("kill", node)
        yield Ends(flow, cells, finish(driver, limit_s=240))


def test_a_cell_that_ends_well_has_its_record(ends: Ends) -> None:
    flow, cells, _ = ends
    told = flow.told(cells["good"])
    assert told["status"] == "ok"
    assert len(set(told["hosts"])) == 2  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad", "exit status 1"),
        ("gone", "it was cancelled, or killed from outside"),
        ("lost", "its node node0"),
    ],
)
def test_a_failure_is_told_with_its_reason(ends: Ends, name: str, reason: str) -> None:
    ends.assert_failed(name, reason)
