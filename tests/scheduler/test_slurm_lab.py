"""Jobs on a real Slurm: however one ends, Snakemake and the record are told how."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab.config.experiment import point_name
from tests.lab.cells import Machine, await_, command_line, pids_on
from tests.lab.cluster import NODES, Cluster
from tests.polling import until
from tests.scheduler.workflow import Ends, Workflow, finish

pytestmark = [pytest.mark.requires("root", "netns", "lab", "ssh"), pytest.mark.slow]
FOREVER = "sleep 600"
POINT = {"storage": "nodelocal", "staging": "none", "nodes": 1, "size_mb": 10, "spill": "local"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "4", "--pfs-option", "metadata_latency_ms=0.1")
        yield cluster


def jobs(cluster: Cluster) -> list[str]:
    """Ids of all jobs that Slurm remembers."""
    return cluster.run("head", "squeue", "-h", "-t", "all", "-o", "%i").split()


def state(cluster: Cluster, job: str) -> str:
    return cluster.run("head", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()


@pytest.fixture(scope="module")
def ends(cluster: Cluster) -> Ends:
    """Five cells in one run of Snakemake, each with another end; and what Snakemake said."""
    flow = Workflow(cluster, "ends")
    good = f"good-1-{Path(point_name('noop', POINT)).name}"
    commands = {
        "gone-1": FOREVER, "lost-1": FOREVER, "slow-1": FOREVER, "bad-1": "exit 3", good: "true"
    }  # fmt: skip
    cells = {name.split("-")[0]: flow.cell(name, text) for name, text in commands.items()}
    driver = flow.snakemake(cells.values())
    for name in ("gone", "lost"):
        flow.await_job(cells[name])
        flow.await_run(cells[name])
    cluster.run("head", "scancel", flow.await_job(cells["gone"]), user="root")
    node = cluster.run(
        "head", "squeue", "-h", "-j", flow.await_job(cells["lost"]), "-o", "%N"
    ).strip()
    cluster.must("kill", node)
    said = finish(driver)
    cluster.must("start", node)
    return Ends(flow, cells, said)


def test_a_cell_that_ends_well_has_its_record(ends: Ends) -> None:
    flow, cells, _ = ends
    assert flow.told(cells["good"])["status"] == "ok"
    assert flow.job(cells["good"])["verdict"] == "success"
    scheduler = flow.told(cells["good"])["provenance"]["scheduler"]  # type: ignore[index]
    assert scheduler["job"] == flow.job(cells["good"])["id"]
    assert scheduler["nodes"] == flow.told(cells["good"])["hosts"]
    assert scheduler["disk_read_bytes"] > 0
    assert scheduler["queue_wait_s"] >= 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad", "exit status 1"),
        ("gone", "it was cancelled (Slurm says CANCELLED"),
        ("lost", "a node of it was lost (Slurm says NODE_FAIL)"),
        ("slow", "it ran out of time (Slurm says TIMEOUT)"),
    ],
)
def test_a_failure_is_told_with_its_reason(ends: Ends, name: str, reason: str) -> None:
    ends.assert_failed(name, reason)


def test_a_cell_whose_node_is_lost_gets_its_failure_recorded(ends: Ends) -> None:
    """By the driver's side: nobody was left there to write it."""
    flow, cells, _ = ends
    told = flow.told(cells["lost"])
    assert "NODE_FAIL" in str(told["reason"])
    assert told["cell"]["workload"] == "noop"  # type: ignore[index]
    assert len(told["hosts"]) == 1  # type: ignore[arg-type]


def test_nothing_is_left_in_the_queue(cluster: Cluster, ends: Ends) -> None:
    assert cluster.run("head", "squeue", "-h").strip() == ""
    assert list((ends.flow.root / ".burstlab/jobs/open").iterdir()) == []


def test_jobs_of_root(cluster: Cluster) -> None:
    flow = Workflow(cluster, "root", user="root")
    good, bad = flow.cell("good-2", "true"), flow.cell("bad-1", "exit 3")
    finish(flow.snakemake([good, bad]))
    assert len(set(flow.told(good)["hosts"])) == 2  # type: ignore[call-overload]
    assert flow.told(bad)["reason"] == "the workload ended with exit status 3"


def test_a_new_snakemake_waits_for_the_jobs_of_a_killed_one(cluster: Cluster) -> None:
    flow = Workflow(cluster, "killed")
    go = flow.root / "go"
    running = flow.cell("first-4", f"until [ -e {flow.there}/go ]; do sleep 0.1; done")
    queued = flow.cell("second-4", "true")
    before = len(jobs(cluster))
    driver = flow.snakemake([running, queued])
    ids = {flow.await_job(target) for target in (running, queued)}
    flow.await_run(running)
    kill(driver)
    second = flow.snakemake([running, queued])
    third = flow.snakemake([running, queued])
    until(lambda: third.poll() is not None or second.poll() is not None, "one of two gives up")
    go.touch()
    said = [finish(second), finish(third)]
    assert sorted(one.count("another Snakemake is at work") for one in said) == [0, 1]
    assert {second.returncode, third.returncode} == {0, 1}
    assert {flow.told(target)["status"] for target in (running, queued)} == {"ok"}
    assert {flow.job(target)["id"] for target in (running, queued)} == ids
    assert len(jobs(cluster)) == before + 2


def test_ctrl_c_cancels_what_runs_and_what_waits(cluster: Cluster) -> None:
    flow = Workflow(cluster, "interrupted")
    machines = [Machine(cluster, name) for name in NODES]
    cells = [flow.cell(name, FOREVER) for name in ("one-4", "other-4")]
    driver = flow.snakemake(cells)
    ids = [flow.await_job(cell) for cell in cells]
    logs = [(flow.root / cell).with_name("workload.log") for cell in cells]
    until(lambda: any(log.exists() for log in logs), "one of them runs")
    lines = {pid: command_line(pid) for pid in pids_on(cluster, "head")}
    os.kill(min(p for p, line in lines.items() if "snakemake" in "".join(line[:2])), signal.SIGINT)
    finish(driver)
    assert driver.returncode != 0
    until(lambda: [state(cluster, job) for job in ids] == 2 * ["CANCELLED"], "both are cancelled")
    [ran, waited] = sorted(cells, key=lambda cell: not (flow.root / cell).parent.exists())
    until((flow.root / ran).with_name("failed.json").exists, "the record of what ran")
    assert flow.told(ran)["reason"] == "stopped by the scheduler: cancelled (scancel)"
    assert not (flow.root / waited).parent.exists()
    await_(lambda: not any(machine.left() for machine in machines), "nothing is left")


def test_a_job_that_ended_while_nobody_looked_is_not_run_again(cluster: Cluster) -> None:
    flow = Workflow(cluster, "alone")
    target = flow.cell("good-1", "date +%N > $BURSTLAB_CELL_DIR/when; sleep 1")
    driver = flow.snakemake([target])
    job = flow.await_job(target)
    kill(driver)
    until(lambda: state(cluster, job) == "COMPLETED", "the job is over")
    when = (flow.root / target).with_name("when").read_text()
    driver = flow.snakemake([target])
    assert finish(driver)
    assert driver.returncode == 0
    assert (flow.root / target).with_name("when").read_text() == when
    assert flow.job(target)["attempt"] == 1


def test_a_job_whose_submission_was_killed_is_found_by_its_name(cluster: Cluster) -> None:
    flow = Workflow(cluster, "between")
    flow.program("sbatch", f'/usr/bin/sbatch --hold "$@"; touch {flow.there}/called; sleep 2')
    target = flow.cell("good-1", "true")
    properties = {"output": [target], "resources": {"nodes": 1, "runtime": 1}}
    script = f"#!/bin/sh\n# properties = {json.dumps(properties)}\n"
    (flow.root / "script").write_text(script)
    words = ("burstlab", "submit", "--site", "lab", "script")
    before = set(jobs(cluster))
    submission = flow.start(*words)
    until((flow.root / "called").exists, "sbatch is called")
    kill(submission)
    assert flow.job(target)["id"] == ""
    (flow.root / "bin/sbatch").unlink()
    said = flow.run(*words).split()
    assert set(jobs(cluster)) - before == set(said)
    assert flow.job(target)["id"] == said[0]
    assert flow.run(*words).split() == said
    flow.run("burstlab", "cancel", *said)
    until(lambda: state(cluster, said[0]) == "CANCELLED", "it is cancelled")
    assert flow.run("burstlab", "status", *said).strip() == "failed"


def kill(process: subprocess.Popen[str]) -> None:
    """As the kernel does when memory is short; not even its end is told."""
    process.kill()
    process.communicate()
