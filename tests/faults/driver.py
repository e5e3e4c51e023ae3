"""The driver of a campaign, killed while a cell of each storage runs, and the one after it."""

import shlex
from collections.abc import Mapping

from tests.faults.bench import STORAGES, Bench
from tests.faults.strikes import UNTIL_TOLD
from tests.lab.cells import SHARED, await_
from tests.scheduler.workflow import Workflow, finish

START_S = 120.0  # five Snakemakes start on this machine
NAME = "driver (Snakemake) gets SIGKILL"
SNAKEFILE = """\
from burstlab.scheduler.driver import drive_alone


rule cell:
    output:
        record="results/{cell}/record.json",
    log:
        "results/{cell}/run.log",
    resources:
        nodes=2,
        runtime=5,
    shell:
        "sh commands/{wildcards.cell} > {log} 2>&1"


onstart:
    drive_alone()
"""


def strike(bench: Bench) -> Mapping[str, str]:
    """What the user sees of each cell: it goes on, and the next Snakemake takes its record."""
    flow = Workflow(bench.cluster, "driver", snakefile=SNAKEFILE)
    targets = {storage: flow.cell(storage, command(bench, storage)) for storage in STORAGES}
    driver = flow.snakemake(targets.values())
    for target in targets.values():
        running = (flow.root / target).with_name("running")
        await_(running.exists, f"{target} runs", limit_s=START_S)
    ids = {flow.await_job(target) for target in targets.values()}
    driver.kill()
    driver.communicate()
    second = flow.snakemake(targets.values())
    await_((flow.root / ".burstlab/driver.lock").exists, "the second one is at work")
    for target in targets.values():
        (flow.root / target).with_name("stop").touch()
    said = finish(second)
    assert second.returncode == 0, said
    assert {flow.job(target)["id"] for target in targets.values()} == ids, "none ran again"
    assert {flow.told(target)["status"] for target in targets.values()} == {"ok"}
    await_(lambda: not left(bench), f"nothing is left, but there is {left(bench)}", limit_s=15)
    return dict.fromkeys(STORAGES, "ok: it goes on, the next Snakemake takes its record")


def command(bench: Bench, storage: str) -> str:
    """What a job runs."""
    words = ["burstlab", "run", "--launch", "srun", "--storage", storage, "--pfs", SHARED]
    words += ["--local-dir", "/local", "--cell-dir", f"results/{storage}"]
    double, before = bench.double, ""
    if storage == "beeond":
        before = f'export PATH="{double.binaries}:$PATH" BEEOND_DOUBLE={double.root}; '
        words += double.flags
    return before + shlex.join([*words, "--", "sh", "-c", UNTIL_TOLD])


def left(bench: Bench) -> list[str]:
    """What is left on any node, and on the parallel file system."""
    found = [what for machine in bench.machines.values() for what in machine.left()]
    return found + [str(path) for path in (bench.cluster.directory / "pfs").glob("burstlab-*")]
