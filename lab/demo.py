"""``make lab-demo``: a campaign on the nodes of a lab; Sawada's Montage matrix in three ways.

    jobs         every cell is a Slurm job                              (profiles/lab)
    allocation   all cells inside one Slurm job that has all nodes      (profiles/allocation)
    ssh          all cells over a hostfile, by ssh, without a scheduler (profiles/allocation)

An ordinary user of the lab types it on the head, in a checkout on the parallel file system; each
way has a checkout of its own. ``python -m lab.demo`` (root) puts the results into
results/lab/WAY and takes the lab down, whatever happens. Given an experiment and a scale, it runs
that as jobs, into results/lab/EXPERIMENT-SCALE.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from burstlab.config import campaign as configured
from burstlab.config.experiment import chosen
from burstlab.errors import BurstlabError
from burstlab.stopping import Stopped, StopSignals
from lab import commands
from lab.layout import PFS_WORK, Lab
from lab.namespaces import REPOSITORY

NODES = 4
RESULTS = Path("results/lab")
# What Snakemake reads of a checkout; burstlab itself is the one that is installed.
CHECKOUT = (
    "Snakefile", "rules", "profiles", "envs", "workflows", "analysis", "report", "config",
)  # fmt: skip
TILES = "BURSTLAB_2MASS"


def jobs(lab: Lab, there: Path) -> list[str]:
    """One job at a time: the nodes have one machine's processors between them."""
    return ["snakemake", "--profile", "profiles/lab", "--jobs", "1"]


def allocation(lab: Lab, there: Path) -> list[str]:
    """salloc runs Snakemake on the head; each cell runs on the first of its nodes."""
    alone = ["salloc", "--quiet", f"--nodes={lab.nodes}", "--exclusive", "--time=60"]
    return [*alone, "snakemake", "--profile", "profiles/allocation"]


def ssh(lab: Lab, there: Path) -> list[str]:
    """A node file without a scheduler: one `host cores` on a line, as Pwrake reads it, too."""
    lines = "".join(f"{node} {lab.cores}\n" for node in lab.node_names)
    (lab.pfs_backing / there.name / "hosts").write_text(lines)
    hosts = f"PBS_NODEFILE={there / 'hosts'}"
    return ["env", hosts, "snakemake", "--profile", "profiles/allocation"]


WAYS: dict[str, Callable[[Lab, Path], list[str]]] = {
    "jobs": jobs,
    "allocation": allocation,
    "ssh": ssh,
}


class Campaign(NamedTuple):
    """An experiment at one of its scales."""

    experiment: str = "sawada"
    scale: str = "lab"

    @property
    def ways(self) -> tuple[str, ...]:
        """In which it is run."""
        return tuple(WAYS) if self == Campaign() else ("jobs",)

    @property
    def target(self) -> list[str]:
        """Words for Snakemake."""
        return ["--config", f"scale={self.scale}", "--", self.experiment]

    def results(self, way: str) -> Path:
        """Where they go, below the checkout."""
        return RESULTS / (way if self == Campaign() else f"{self.experiment}-{self.scale}")


def main(checkout: Path, campaign: Campaign) -> int:
    """1 when a way failed; its results are kept like the others'. Raises BurstlabError."""
    planned = configured.Campaign(checkout, {"site": "lab"})
    chosen(planned.experiments, campaign.experiment, campaign.scale)
    base = Path(tempfile.mkdtemp(prefix="burstlab-lab-demo-", dir="/var/tmp"))
    base.chmod(0o755)
    carried = {str(REPOSITORY), sys.prefix, sys.base_prefix}
    lab = Lab(base / "lab", nodes=NODES, carry=tuple(sorted(carried)))
    failed = []
    with StopSignals(0).active() as signals:
        try:
            print(f"lab-demo: {NODES} nodes in {lab.directory} (burstlab lab status --directory)")
            commands.up(lab)
            failed = [way for way in campaign.ways if not run(lab, way, checkout, campaign)]
        finally:
            signals.hold()
            if commands.journals(lab.directory):
                commands.down(lab.directory)
            base.rmdir()
    for way in campaign.ways:
        page = checkout / campaign.results(way) / "report.html"
        told = "FAILED, see above" if way in failed else page
        print(f"lab-demo: {way:10} {told}")
    return 1 if failed else 0


def run(lab: Lab, way: str, checkout: Path, campaign: Campaign) -> bool:
    """Run the campaign one way, fetch its results; whether all of it came to a good end."""
    there = copy(lab, way, checkout)
    command, target = WAYS[way](lab, there), campaign.target
    print(f"lab-demo: {way}: {' '.join([*command, *target])}", flush=True)
    try:
        ok = on_head(lab, there, [*command, *target])
        profile = command[command.index("--profile") + 1]
        report = ["snakemake", "--profile", profile, "--report", "results/report.html"]
        return ok and on_head(lab, there, [*report, *target])
    finally:
        results = checkout / campaign.results(way)
        shutil.rmtree(results, ignore_errors=True)
        if (made := lab.pfs_backing / way / "results").exists():
            shutil.copytree(made, results)


def copy(lab: Lab, way: str, checkout: Path) -> Path:
    """A checkout of the user's own on the parallel file system, and the tiles, if any are given."""
    target = lab.pfs_backing / way
    for name in CHECKOUT:
        source = checkout / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.mkdir(exist_ok=True)
            shutil.copy(source, target)
    if given := os.environ.get(TILES):
        shutil.copytree(given, target / "tiles")
    owner = lab.home.stat()
    for path in (target, *target.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    return Path(PFS_WORK, way)


def on_head(lab: Lab, there: Path, words: list[str]) -> bool:
    """Run a command as the ordinary user on the head, in its checkout; whether it succeeded."""
    variables = [f"BURSTLAB_PFS={PFS_WORK}"]
    if os.environ.get(TILES):
        variables.append(f"{TILES}={there / 'tiles'}")
    path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
    where = ["--directory", str(lab.directory), "--user", lab.user, "head"]
    argv = [sys.executable, "-m", "burstlab", "lab", "exec", *where, "--"]
    argv += ["env", "-C", str(there), *variables, path, *words]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, cwd=REPOSITORY).returncode == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="lab.demo", description=__doc__.splitlines()[0])
    parser.add_argument("experiment", nargs="?", default=Campaign().experiment)
    parser.add_argument("scale", nargs="?", default=Campaign().scale)
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, metavar="DIR")
    asked = parser.parse_args()
    try:
        sys.exit(main(asked.checkout.resolve(), Campaign(asked.experiment, asked.scale)))
    except (BurstlabError, Stopped) as error:
        sys.exit(f"lab-demo: {error}")
