"""Cells that load minibatches by each pipeline, and that stage, as `burstlab run` runs them."""

import csv
import json
import sys
from pathlib import Path

import pytest

from burstlab.dataset.images import make_images
from burstlab.dataset.model import SyntheticImages
from burstlab.dataset.writing import scan, write_manifest
from tests.cell.running import Place
from tests.requirements import ROOT

pytestmark = pytest.mark.requires("burstio", "fuse")

PROGRAM = ROOT / "workflows" / "prefetch" / "run"
WHERE = {"direct": "pfs", "ssd": "nodelocal", "paper3": "pfs", "lazy": "pfs"}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 24 images."""
    directory = tmp_path_factory.mktemp("data")
    arguments = SyntheticImages(classes=3, files=24, mean_bytes=4000)
    make_images(directory / "images", arguments)
    names = [str(p.relative_to(directory / "images")) for p in directory.rglob("*.JPEG")]
    write_manifest(
        directory / "manifest.json",
        scan(directory / "images", sorted(names)),
        name="images",
        source="synthetic",
        details={},
        root=directory / "images",
        patterns=("*/*.JPEG",),
    )
    return directory / "manifest.json"


def flags(manifest: Path, mode: str, storage: str, **parameters: object) -> list[str | Path]:
    staging = "eager" if storage == "nodelocal" else "none"
    given: list[str | Path] = ["--storage", storage, "--staging", staging, "--dataset", manifest]
    given += ["--pfs", "emulated", "--cache", "cold", "--label", "workload=prefetch"]
    labels = {"mode": mode, "batch": 4, **parameters}
    return [*given, *(word for k, v in labels.items() for word in ("--label", f"{k}={v}"))]


def test_every_mode_loads_the_same_minibatches(tmp_path: Path, manifest: Path) -> None:
    digests = set()
    for mode, storage in WHERE.items():
        place = Place(tmp_path / mode)
        place.root.mkdir()
        done = place.run(*flags(manifest, mode, storage, minibatches=6), run=[PROGRAM])
        assert done.returncode == 0, done.stderr
        record = json.loads((place.cell / "record.json").read_text())
        metrics = {metric["name"]: metric["value"] for metric in record["metrics"]}
        with (place.cell / "operations.csv").open() as file:
            times = [float(row["elapsed_s"]) for row in csv.DictReader(file)]
        assert len(times) == 6
        assert times[0] == pytest.approx(metrics["first_minibatch_time"], abs=1e-5)
        assert sum(times) == pytest.approx(metrics["minibatches_time"], abs=1e-4)
        digests.add(record["workload_facts"]["last_minibatch_sha256"])
        told = f"mode={mode},minibatches=6,batch=4,generation=2,copiers=2"
        assert record["workload_facts"]["parameters"] == told
        assert not any("later epochs" in issue for issue in record["issues"])
    assert len(digests) == 1
    assert record["workload_facts"]["source_opens"] == "24"


def test_more_samples_than_files_are_an_issue(tmp_path: Path, manifest: Path) -> None:
    place = Place(tmp_path)
    done = place.run(*flags(manifest, "lazy", "pfs", minibatches=7), run=[PROGRAM])
    assert done.returncode == 0, done.stderr
    issues = json.loads((place.cell / "record.json").read_text())["issues"]
    assert any("28 samples of 24 files" in issue for issue in issues)


@pytest.mark.parametrize(
    ("mode", "storage", "parameters", "told"),
    [
        ("ssd", "pfs", {}, "mode ssd on storage pfs: it is measured on nodelocal"),
        ("fast", "pfs", {}, "PREFETCH_MODE=fast: there are direct, ssd, paper3, lazy"),
        ("lazy", "pfs", {"minibatches": 0}, "PREFETCH_MINIBATCHES=0: a whole number from 1"),
    ],
)
def test_what_makes_no_sense_is_the_reason(
    tmp_path: Path, manifest: Path, mode: str, storage: str, parameters: dict, told: str
) -> None:
    place = Place(tmp_path)
    done = place.run(*flags(manifest, mode, storage, **parameters), run=[PROGRAM])
    assert done.returncode == 1
    assert told in json.loads((place.cell / "failed.json").read_text())["reason"]


def test_a_truncated_image_is_the_reason(tmp_path: Path, manifest: Path) -> None:
    spoil = (
        "import os, pathlib, sys; "
        "data = pathlib.Path(os.environ['BURSTLAB_LOCAL'], 'data'); "
        "import shutil; shutil.copytree(os.environ['BURSTLAB_DATA'], data); "
        "one = next(data.rglob('*.JPEG')); one.write_bytes(one.read_bytes()[:500]); "
        f"os.environ['BURSTLAB_DATA'] = str(data); os.execv('{PROGRAM}', ['{PROGRAM}'])"
    )
    place = Place(tmp_path)
    run = [sys.executable, "-c", spoil]
    done = place.run(*flags(manifest, "direct", "pfs", minibatches=6), run=run)
    assert done.returncode == 1
    reason = json.loads((place.cell / "failed.json").read_text())["reason"]
    assert "no whole image" in reason and ".JPEG" in reason


@pytest.mark.requires("staging")
@pytest.mark.parametrize("method", ["paper", "copy"])
def test_staging_as_a_workload(tmp_path: Path, manifest: Path, method: str) -> None:
    place = Place(tmp_path)
    given = ["--storage", "nodelocal", "--dataset", manifest, "--pfs", "emulated", "--nodes", "2"]
    given += ["--label", "workload=staging", "--label", f"method={method}"]
    done = place.run(*given, run=[ROOT / "workflows" / "staging" / "run"])
    assert done.returncode == 0, done.stderr
    record = json.loads((place.cell / "record.json").read_text())
    assert "staging_time" in {metric["name"] for metric in record["metrics"]}
