"""CPU of a dry run of 10,000 cells, beside 10,000 jobs of a Snakefile with nothing in it.

python benchmarks/dry_run.py [--cells 10000] [--runs 5]

Both are planned in a temporary directory, in turns. The cells are those of an experiment with the
checkout's own Snakefile, rules, profiles and site `local`.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("Snakefile", "rules", "profiles", "envs", "workflows", "analysis", "config")
SETTINGS = 100  # of the parameter that fills the matrix up: 2 storages x 5 node counts x 10 repeats
EXPERIMENT = """\
title: a large matrix
scales:
  demo:
    repeats: {repeats}
    blocks:
      - workload: montage
        dataset: 2mass-demo
        needs: [shared]
        runtime_min: 10
        product: {{nodes: [1, 2, 4, 8, 16], setting: {settings}}}
        zip: [{{storage: [pfs, gfarm], staging: [none, eager]}}]
"""
FLAT = """\
rule flat:
    input: [f"out/{{i}}.txt" for i in range({jobs})]
rule job:
    output: "out/{{i}}.txt"
    shell: "touch {{output}}"
"""


def main() -> int:
    """Print a line for each of the two: median and range of CPU seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=10_000, help="a multiple of 1,000")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="burstlab-dry-run-") as directory:
        campaign, flat = Path(directory, "campaign"), Path(directory, "flat")
        make_campaign(campaign, arguments.cells)
        make_flat(flat, arguments.cells)
        taken: dict[str, list[float]] = {"flat": [], "burstlab": []}
        for _ in range(arguments.runs):
            taken["flat"].append(cpu_s(flat, "flat", "--cores", "1"))
            taken["burstlab"].append(cpu_s(campaign, "large", "--profile", "profiles/local"))
    for name, seconds in taken.items():
        print(
            f"{name:8}  {arguments.cells} jobs: {statistics.median(seconds):.2f} s CPU "
            f"(median of {len(seconds)}; {min(seconds):.2f} to {max(seconds):.2f})"
        )
    ratio = statistics.median(taken["burstlab"]) / statistics.median(taken["flat"])
    print(f"burstlab / flat: {ratio:.2f}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


def make_campaign(directory: Path, cells: int) -> None:
    """A copy of the checkout's workflow with one experiment, of that many cells."""
    directory.mkdir()
    for name in COPIED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, directory / name)
    experiments = directory / "config/experiments"
    shutil.rmtree(experiments)
    experiments.mkdir()
    repeats = cells // (10 * SETTINGS)
    text = EXPERIMENT.format(repeats=repeats, settings=list(range(SETTINGS)))
    (experiments / "large.yaml").write_text(text)


def make_flat(directory: Path, jobs: int) -> None:
    """The least Snakefile with that many jobs."""
    directory.mkdir()
    (directory / "Snakefile").write_text(FLAT.format(jobs=jobs))


def cpu_s(directory: Path, target: str, *flags: str) -> float:
    """CPU seconds, user and system, of one dry run."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "snakemake", "--dry-run", *flags, target]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
