"""A workload that does nothing but fail when asked to, and checkouts that have run it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout, Run

NOOP = {
    "workflows/noop/run": """\
#!/bin/sh
test "$NOOP_END" = good || test -e repaired
""",
    "envs/noop/commands.txt": "true coreutils\n",
    "envs/noop/conda.yaml": "dependencies: [coreutils]\n",
    "rules/noop.smk": """\
rule noop:
    input:
        campaign.prepared("noop"),
    output:
        record=campaign.record("noop"),
    log:
        "results/{cell}/run.log",
    retries: 0
    conda:
        "../envs/noop/conda.yaml"
    resources:
        **campaign.resources,
    params:
        run=campaign.run,
        conditions=campaign.conditions,
    shell:
        "burstlab run {params.run} -- workflows/noop/run > {log} 2>&1"
""",
    "config/datasets.yaml": """\
small:
  kind: 2mass
  source: synthetic
  synthetic: {columns: 2, rows: 1, tile_width: 64, tile_height: 64, stars_per_tile: 5}
""",
    "config/sites/here.yaml": """\
title: a directory as parallel file system, so that nothing but burstlab itself is needed
default_scale: demo
virtual_nodes: true
local_dir: scratch
pfs: {directory: pfs}
""",
    "config/experiments/nothing.yaml": """\
title: no work at all
scales:
  demo:
    repeats: 2
    blocks:
      - workload: noop
        dataset: small
        cache: as-is
        runtime_min: 5
        product: {nodes: [1, 2], storage: [nodelocal], staging: [eager], end: [good, bad]}
""",
}
TARGET = "snakemake --config site=here --cores 1 nothing"


def with_noop(directory: Path) -> Checkout:
    """A checkout whose only experiment is `nothing`: 2 nodes x 2 ends x 2 repeats."""
    checkout = Checkout.make(directory)
    for shipped in (checkout.root / "config/experiments").iterdir():
        shipped.unlink()
    for name, text in NOOP.items():
        path = checkout.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (checkout.root / "workflows/noop/run").chmod(0o755)
    for name in ("pfs", "scratch"):
        (checkout.root / name).mkdir()
    return checkout


@pytest.fixture(scope="session")
def half(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, Run]:
    """Run once: half of the cells failed. Not to be changed."""
    checkout = with_noop(tmp_path_factory.mktemp("half"))
    return checkout, checkout.shell(TARGET)


@pytest.fixture(scope="session")
def done(
    half: tuple[Checkout, Run], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Checkout, Run]:
    """Run again after the fault was repaired: everything is there. Not to be changed."""
    checkout = moved(half[0], tmp_path_factory.mktemp("done"))
    (checkout.root / "repaired").touch()
    return checkout, checkout.shell(TARGET)


@pytest.fixture
def checkout(done: tuple[Checkout, Run], tmp_path: Path) -> Checkout:
    """Everything done, somewhere else, to be changed."""
    return moved(done[0], tmp_path)


@pytest.fixture
def planned(checkout: Checkout) -> Callable[..., Run]:
    """What Snakemake would do in ``checkout``."""

    def plan(flags: str = "") -> Run:
        run = checkout.shell(f"{TARGET} --dry-run {flags}")
        assert run.status == 0, run.text
        return run

    return plan


def moved(checkout: Checkout, directory: Path) -> Checkout:
    """The same checkout with its results and all times, in another directory."""
    there = Checkout(directory / "checkout", directory / "home")
    shutil.copytree(checkout.root, there.root, symlinks=True)
    shutil.copytree(checkout.home, there.home, symlinks=True)
    return there
