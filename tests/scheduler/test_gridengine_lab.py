"""Jobs on a real Grid Engine: however one ends, Snakemake and the record are told how."""

from collections.abc import Iterator

import pytest

from tests.lab.cells import Machine, await_
from tests.lab.cluster import Cluster
from tests.polling import until
from tests.scheduler.workflow import Ends, Workflow, finish

pytestmark = [
    pytest.mark.requires("root", "netns", "lab", "lab-gridengine", "ssh"),
    pytest.mark.slow,
]
FOREVER = "sleep 600"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "3", "--cores", "3", "--scheduler", "gridengine")
        yield cluster


@pytest.fixture(scope="module")
def ends(cluster: Cluster) -> Ends:
    """Four cells in one run of Snakemake, each with another end; and what Snakemake said."""
    flow = Workflow(cluster, "ends", scheduler="gridengine", submit='[-pe, nodes, "{nodes}"]')
    commands = {"gone-1": FOREVER, "lost-1": FOREVER, "bad-1": "exit 3", "good-2": "true"}
    cells = {name.split("-")[0]: flow.cell(name, text) for name, text in commands.items()}
    machines = {name: Machine(cluster, name) for name in cluster.machines() if name != "head"}
    driver = flow.snakemake(cells.values())
    for name in ("gone", "lost"):
        flow.await_job(cells[name])
        flow.await_run(cells[name])
    flow.run("qdel", flow.await_job(cells["gone"]))
    for name in ("gone", "bad", "good"):
        until(lambda name=name: flow.job(cells[name])["verdict"], f"the end of {name}")
    lost = node_of(flow, cells["lost"])
    await_(
        lambda: not [what for name in machines if name != lost for what in machines[name].left()],
        "nothing is left of the cells that ended",
    )
    cluster.must("kill", lost)
    return Ends(flow, cells, finish(driver, limit_s=240))


def node_of(flow: Workflow, cell: str) -> str:
    """Where its job began."""
    job = flow.root / ".burstlab/jobs" / str(flow.job(cell)["name"])
    return (job / "1.start").read_text().split("nodes ")[1].split()[0]


def test_a_campaign_runs_inside_a_job(cluster: Cluster) -> None:
    """A Snakemake in a job of two hosts: its cells find them, and leave nothing on them."""
    flow = Workflow(cluster, "inside", scheduler="gridengine", submit="[]")
    cells = [flow.cell(name, "true") for name in ("first-2", "second-2")]
    asked = ["qsub", "-sync", "y", "-b", "y", "-cwd", "-notify", "-pe", "nodes", "2"]
    snakemake = flow.argv("snakemake", "--cores", "1", "--scheduler", "greedy", *cells)
    flow.run(*asked, "-j", "y", "-o", "inside.log", *snakemake)
    told = [flow.told(cell) for cell in cells]
    assert [one["status"] for one in told] == ["ok", "ok"]
    assert [len(set(one["hosts"])) for one in told] == [2, 2]
    assert {one["provenance"]["allocation"] for one in told} == {"PE_HOSTFILE"}


def test_a_cell_that_ends_well_has_its_record(ends: Ends) -> None:
    flow, cells, _ = ends
    told = flow.told(cells["good"])
    assert told["status"] == "ok"
    assert len(set(told["hosts"])) == 2  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad", "exit status 1"),
        ("gone", "exit status 1"),  # it was warned, and ended before it was killed
        ("lost", "its node node0"),
    ],
)
def test_a_failure_is_told_with_its_reason(ends: Ends, name: str, reason: str) -> None:
    ends.assert_failed(name, reason)


def test_qdel_lets_the_cell_write_its_record(ends: Ends) -> None:
    flow, cells, _ = ends
    assert str(flow.told(cells["gone"])["reason"]).startswith("stopped by SIGUSR2")
