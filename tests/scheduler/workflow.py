"""A small workflow of cells on a lab's parallel file system, driven from its head."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.lab.cluster import REPOSITORY, Cluster
from tests.polling import until

SNAKEFILE = """\
from burstlab.scheduler.driver import cancel_when_interrupted, drive_alone


def before(wildcards):
    with open(f"commands/{wildcards.cell}") as command:
        first = command.readline().strip()
    return first.removeprefix("# after ") if first.startswith("# after ") else []


rule cell:
    input:
        before,
    output:
        record="results/{cell}/record.json",
    log:
        "results/{cell}/run.log",
    resources:
        nodes=lambda w: int(w.cell.split("-")[1]),
        runtime=lambda w: 1 if w.cell.startswith("slow") else 5,
    params:
        run="--launch ssh --storage nodelocal --local-dir /local --label workload=noop",
    shell:
        "burstlab run {params.run} --cell-dir results/{wildcards.cell}"
        " -- sh commands/{wildcards.cell} > {log} 2>&1"


onstart:
    drive_alone()
    cancel_when_interrupted()
"""
SITE = """\
title: the lab
default_scale: demo
scheduler: {scheduler}
submit: {submit}
poll_s: 0.5
local_dir: /local
pfs: {{directory: /pfs/work}}
"""


class Workflow:
    """Cells are named KIND-NODES-N; each runs a shell script of its own."""

    def __init__(
        self, cluster: Cluster, name: str, user: str = "lab", scheduler: str = "slurm",
        submit: str = "[--exclusive]", snakefile: str = SNAKEFILE,
    ) -> None:  # fmt: skip
        self.cluster, self.user = cluster, user
        self.there = Path("/pfs/work", name)
        self.root = cluster.directory / "pfs" / name
        for part in ("config/sites", "commands", "bin", "profiles"):
            (self.root / part).mkdir(parents=True)
        for name in ("lab", "default"):
            shutil.copytree(REPOSITORY / "profiles" / name, self.root / "profiles" / name)
        site = SITE.format(scheduler=scheduler, submit=submit)
        (self.root / "config/sites/lab.yaml").write_text(site)
        (self.root / "Snakefile").write_text(snakefile)
        self.program("burstlab", f'exec {sys.executable} -m burstlab "$@"')
        owner = (cluster.directory / "home").stat()
        if user != "root":
            for path in (self.root, *self.root.rglob("*")):
                os.chown(path, owner.st_uid, owner.st_gid)

    def program(self, name: str, text: str) -> Path:
        """A shell script that comes first in PATH."""
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def cell(self, name: str, command: str, after: str = "") -> str:
        """Declare what a cell runs, after which other target; returns its target."""
        first = f"# after {after}\n" if after else ""
        (self.root / "commands" / name).write_text(f"{first}{command}\n")
        return f"results/{name}/record.json"

    def argv(self, *words: str) -> list[str]:
        """To be run on the head, in the workflow's directory."""
        path = f"{self.there}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return ["env", "-C", str(self.there), "-u", "BURSTLAB_STATE", f"PATH={path}", *words]

    def run(self, *words: str) -> str:
        """A command, which must succeed."""
        return self.cluster.run("head", *self.argv(*words), user=self.user)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command, which goes on; killing it kills what it runs."""
        where = ["--user", self.user, "head", "--"]
        return self.cluster.start("exec", *where, *self.argv(*words))

    def snakemake(self, targets: Iterable[str]) -> subprocess.Popen[str]:
        """The driver."""
        line = ["snakemake", "--profile", "profiles/lab", "--scheduler", "greedy"]
        return self.start(*line, *targets)

    def job(self, target: str) -> dict[str, object]:
        """What is noted of the last submission for a cell; empty before there was one."""
        for path in self.root.glob(".burstlab/jobs/bl-*/job.json"):
            job: dict[str, object] = json.loads(path.read_text())
            if job["target"] == target:
                return job
        return {}

    def await_job(self, target: str) -> str:
        """The id of a cell's job, once it has one."""
        until(lambda: bool(self.job(target).get("id")), f"{target} is submitted")
        return str(self.job(target)["id"])

    def await_run(self, target: str) -> None:
        """Until the cell's command runs."""
        until((self.root / target).with_name("workload.log").exists, f"{target} runs")

    def told(self, target: str) -> dict[str, object]:
        """record.json or failed.json of a cell."""
        directory = (self.root / target).parent
        found = [path for path in directory.glob("*.json") if path.stem in ("record", "failed")]
        assert len(found) == 1, sorted(directory.iterdir())
        told: dict[str, object] = json.loads(found[0].read_text())
        return told


class Ends(NamedTuple):
    """Cells of one run of Snakemake, each with another end; and what Snakemake said."""

    flow: Workflow
    cells: Mapping[str, str]  # by the end they had: their targets
    said: str

    def assert_failed(self, name: str, reason: str) -> None:
        """The job, Snakemake and the record have that reason."""
        target = self.cells[name]
        job = self.flow.job(target)
        assert job["verdict"] == "failed"
        assert str(job["reason"]).startswith(reason)
        assert f"job {job['id']} of {target}: {reason}" in self.said
        assert self.flow.told(target)["status"] == "failed"


def finish(driver: subprocess.Popen[str], limit_s: float = 150.0) -> str:
    """Wait for a driver; what it said."""
    out, err = driver.communicate(timeout=limit_s)
    return out + err
