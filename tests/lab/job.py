"""A Slurm job that holds nodes of a lab, and programs run in it, one after the other."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.lab.cluster import NODES, REPOSITORY, Cluster
from tests.polling import until

LIMIT_S = 240


class HeldJob:
    """Its programs run on its first node, as the job's user, in the environment of its script.

    A job for each program would cost seconds; to a program it is the same. The job outlives the
    loss of a node, and ends with the lab.
    """

    def __init__(self, cluster: Cluster, nodes: int) -> None:
        self.cluster, self.hosts = cluster, NODES[:nodes]
        self.shared = cluster.directory / "pfs"
        self._seen = self.shared / f"job-{nodes}"
        script = cluster.directory / f"job-{nodes}.sh"
        told = f"/pfs/work/{self._seen.name}"
        script.write_text(
            f"#!/bin/sh\nsleep 3600 &\nenv -0 >{told}.part && mv {told}.part {told}; wait\n"
        )
        where = ["-N", str(nodes), "-w", ",".join(self.hosts), "-o", "/dev/null"]
        where += ["-t", "60"]
        words = ["sbatch", "--parsable", "--no-requeue", "--no-kill", "--overcommit", *where]
        cluster.run("head", *words, str(script))
        until(self._seen.exists, "the job runs")

    def argv(self, *words: str | Path) -> list[str]:
        """The words after `burstlab lab exec` that run a program."""
        given = [pair for pair in self._seen.read_text().split("\0") if pair]
        given.append(f"PYTHONPATH={REPOSITORY / 'src'}:{REPOSITORY}")
        program = ["env", "-i", "-C", str(REPOSITORY), *given, *map(str, words)]
        return ["--user", "lab", self.hosts[0], "--", *program]

    def python(
        self, *words: str | Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a module of the tests to its end; ``variables`` are added to its environment."""
        more = [f"{name}={value}" for name, value in (variables or {}).items()]
        argv = self.cluster.argv("exec", *self.argv("env", *more, sys.executable, "-m", *words))
        return subprocess.run(
            argv, env=self.cluster.environment, cwd=REPOSITORY, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S,
        )  # fmt: skip

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        """Start a module of the tests."""
        return self.cluster.start("exec", *self.argv(sys.executable, "-m", *words))
