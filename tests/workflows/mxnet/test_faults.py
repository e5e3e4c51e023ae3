"""Whatever strikes a training, the record tells what it was and nothing runs on."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from burstlab.dataset.manifest import members
from burstlab.dataset.writing import scan, write_manifest

from .running import DEADLINE_S, Place, until, workers

pytestmark = pytest.mark.requires("mxnet")

ENDED = "the workload ended with exit status"
ENDLESS = {"epochs": "100000"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "told"),
    [
        ("1", f"{ENDED} 137: rank 1 on localhost was killed by SIGKILL"),
        ("mpirun", f"{ENDED} 137: mpirun: killed by SIGKILL"),
    ],
)
def test_a_process_is_killed_while_all_train(place: Place, victim: str, told: str) -> None:
    with place.start(**ENDLESS) as run:
        until(lambda: (place.cell / "workload.log").exists(), "the workload runs")
        until(lambda: "epoch 1 of" in place.log() or run.poll() is not None, "the ranks train")
        os.kill(workers(place.cell)[victim], signal.SIGKILL)
        run.wait(DEADLINE_S)
    record = place.record()
    assert (record["status"], record["reason"]) == ("failed", told)
    assert workers(place.cell) == {}


@pytest.mark.slow
@pytest.mark.parametrize("format", ["jpeg", "recordio"])
def test_a_truncated_image(spoilt: Place, format: str) -> None:
    victim = spoilt.images / "n90000002" / "n90000002_14.JPEG"
    whole = victim.read_bytes()
    victim.write_bytes(whole[: len(whole) // 2])
    record = spoilt.run(format=format)
    assert record["status"] == "failed"
    assert record["reason"].startswith(f"{ENDED} 1: rank ")
    told = f"{victim}: is truncated ({len(whole) // 2} bytes without an end of image)"
    assert record["reason"].endswith(f" on localhost: {told}")


@pytest.mark.slow
def test_a_missing_class_folder(spoilt: Place) -> None:
    patterns = ["*/*.JPEG"]
    write_manifest(
        spoilt.manifest,
        scan(spoilt.images, members(spoilt.images, patterns)),
        name="images",
        source="synthetic",
        details={},
        root=spoilt.images,
        patterns=patterns,
    )
    shutil.rmtree(spoilt.images / "n90000001")
    record = spoilt.run()
    assert record["status"] == "failed"
    told = f"{spoilt.images}: the class folder n90000001 is missing"
    assert record["reason"].endswith(f" on localhost: {told}")


def test_no_images_at_all(place: Place, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    record = Place(tmp_path, tmp_path / "empty").run()
    told = f"{tmp_path}/empty: no JPEG file in any class folder (BURSTLAB_DATA)"
    assert record["reason"] == f"{ENDED} 1: {told}"


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"format": "png"}, "MXNET_FORMAT=png: recordio or jpeg is wanted"),
        ({"batch": "0"}, "MXNET_BATCH=0: a whole number from 1 is wanted"),
    ],
)
def test_a_wrong_parameter(place: Place, parameters: dict[str, str], told: str) -> None:
    assert place.run(**parameters)["reason"] == f"{ENDED} 1: {told}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"network": "resnet51"}, "Model resnet51 is not supported"),
        ({"batch": "17"}, "32 images: fewer than the 34 of one minibatch on each rank"),
    ],
)
def test_what_only_a_rank_can_tell(place: Place, parameters: dict[str, str], told: str) -> None:
    record = place.run(**parameters)
    assert record["reason"].startswith(f"{ENDED} 1: rank ")
    assert told in record["reason"]
