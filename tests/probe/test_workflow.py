"""`snakemake storage`, as a user types it: on this machine, and in the jobs of a lab."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Cluster
from tests.workflow.checkout import COPIED, ROOT, Checkout

pytestmark = pytest.mark.slow

FEW = """\
title: the probe, in few cells
figures: [storage-1, storage-2, storage-3]
scales:
  demo:
    repeats: 1
    blocks:
      - workload: probe
        cache: as-is
        runtime_min: 5
        product: {storage: [nodelocal, gfarm, provided], staging: [none], nodes: [1, 2]}
"""


def told(root: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Records by storage and number of nodes."""
    paths = (root / "results/storage/demo").rglob("record.json")
    records = [json.loads(path.read_text()) for path in paths]
    return {(one["cell"]["storage"], one["cell"]["nodes"]): one for one in records}


def share(record: dict[str, Any]) -> float:
    return next(one["value"] for one in record["metrics"] if one["name"] == "local_share")


def drawn(root: Path) -> set[str]:
    return {path.name for path in (root / "results/figures/storage/demo").glob("storage-*.png")}


ALL_DRAWN = {"storage-1.png", "storage-2.png", "storage-3.png"}


@pytest.mark.requires("gfarm", "fuse")
def test_on_this_machine(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path)
    (checkout.root / "config/experiments/storage.yaml").write_text(FEW)
    run = checkout.shell("snakemake --profile local storage")
    assert run.status == 0, run.text
    records = told(checkout.root)
    assert {point: one["status"] for point, one in records.items()} == {
        ("nodelocal", 1): "ok",
        ("nodelocal", 2): "ok",
        ("gfarm", 1): "ok",
        ("gfarm", 2): "skipped",
        ("provided", 1): "skipped",
        ("provided", 2): "skipped",
    }
    assert "virtual nodes share one host" in records["gfarm", 2]["reason"]
    assert share(records["gfarm", 1]) == 100
    assert drawn(checkout.root) == ALL_DRAWN
    assert checkout.shell("snakemake --profile local storage").nothing_to_do


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "2", "--pfs-option", "metadata_latency_ms=0.1")
        yield cluster


@pytest.mark.requires("root", "netns", "lab", "ssh", "gfarm", "fuse")
def test_in_the_jobs_of_a_lab(cluster: Cluster) -> None:
    root = cluster.directory / "pfs/mine"
    root.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, root / name)
    (root / "config/experiments/storage.yaml").write_text(FEW)
    owner = (cluster.directory / "home").stat()
    for path in (root, *root.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    (root / "bin").mkdir()
    command = root / "bin/burstlab"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m burstlab "$@"\n')
    command.chmod(0o755)
    there = "/pfs/work/mine"
    path = f"{there}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["env", "-C", there, f"PATH={path}", "snakemake", "--profile", "profiles/lab"]
    cluster.run("head", *words, "storage")
    records = told(root)
    statuses = {point: one["status"] for point, one in records.items()}
    assert set(statuses) == {(s, n) for s in ("nodelocal", "gfarm", "provided") for n in (1, 2)}
    assert [s for (name, _), s in statuses.items() if name != "provided"] == ["ok"] * 4
    both = records["gfarm", 2]
    assert share(both) == 100
    assert both["workload_facts"]["launch"] == "ssh"
    assert len({row.split(",")[3] for row in operations(root, "gfarm-none/n2")}) == 2
    assert drawn(root) == ALL_DRAWN


def operations(root: Path, cell: str) -> list[str]:
    path = root / "results/storage/demo/probe" / cell / "default/r1/operations.csv"
    return path.read_text().splitlines()[1:]
