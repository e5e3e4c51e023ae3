"""The rules from records to the report, run by Snakemake on records made for the test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.conftest import Make

ROOT = Path(__file__).parents[2]
NEEDED = ["Snakefile", "analysis", "envs", "profiles", "report", "rules", "src", "workflows"]
NEEDED += ["config/datasets.yaml", "config/sites"]
DRAWING = ["tables", "phases", "figure_sawada_1", "figure_sawada_3", "report", "demo"]

pytestmark = pytest.mark.slow


EXPERIMENT = """
title: a trial
part_of_demo: true
figures: [sawada-1, sawada-3]
scales:
  demo:
    repeats: 3
    blocks:
      - workload: montage
        runtime_min: 5
        product: {nodes: [1, 2]}
        zip: [{storage: [pfs, gfarm], staging: [none, eager]}]
"""


@pytest.fixture
def checkout(make: Make, tmp_path: Path) -> Path:
    """A checkout with an experiment whose records are all there, and nothing drawn yet."""
    for repeat in (1, 2, 3):
        make("pfs", 1, repeat)
        make("pfs", 2, repeat)
        make("gfarm", 1, repeat, staging="eager")
        made = {"status": "skipped", "reason": "it needs separate hosts"}
        make("gfarm", 2, repeat, staging="eager", **made)
    place = tmp_path / "checkout"
    (place / "config/experiments").mkdir(parents=True)
    (place / "config/experiments/trial.yaml").write_text(EXPERIMENT)
    for name in NEEDED:
        (place / name).symlink_to(ROOT / name)
    shutil.copytree(tmp_path / "results", place / "results")
    return place


def snakemake(place: Path, *arguments: str) -> str:
    """What Snakemake says; only the rules that draw may run, records are what is there."""
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/local"]
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*command, "--allowed-rules", *DRAWING, "--", *arguments],
        cwd=place,
        env={**os.environ, "PATH": programs},
        capture_output=True,
        text=True,
        timeout=240,
    )
    said = done.stdout + done.stderr
    logs = "".join(path.read_text() for path in place.rglob("*.log") if path.is_file())
    assert done.returncode == 0, said + logs
    return said


def test_report_is_made_from_records_and_only_when_they_change(checkout: Path) -> None:
    snakemake(checkout, "demo", "report")
    page = (checkout / "results/report.html").read_text()
    assert "synthetic files, made by burstlab" in page
    assert "The parallel file system is emulated" in page
    assert "it needs separate hosts" in page
    assert "sawada-1.svg" in page
    assert "Nothing to be done" in snakemake(checkout, "demo", "report")

    (checkout / "results/figures/trial/demo/sawada-3.svg").unlink()
    again = snakemake(checkout, "demo", "report")
    assert "rule figure_sawada_3:" in again
    assert "rule figure_sawada_1:" not in again
