"""Whatever strikes a training, the record tells what it was and nothing runs on."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from burstlab.dataset.manifest import members
from burstlab.dataset.writing import scan, write_manifest

from .running import ENDED, Place, processes, rank_process, until

pytestmark = pytest.mark.requires("chainer", "burstio")


@pytest.mark.slow
def test_a_rank_is_killed_while_all_train(place: Place) -> None:
    # paper3 has the most processes that could be left
    run = place.start(mode="paper3", epochs="100000")
    try:
        until(lambda: "epoch 2 of" in place.log() or run.poll() is not None, "the ranks train")
        os.kill(rank_process(place.cell, "1"), signal.SIGKILL)
        run.wait(100)
    finally:
        run.terminate()
        run.wait(60)
    record = place.record()
    told = f"{ENDED} 137: rank 1 on localhost was killed by SIGKILL"
    assert (record["status"], record["reason"]) == ("failed", told)
    assert processes(place.cell) == {}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "lazy"])
def test_a_truncated_image(spoilt: Place, mode: str) -> None:
    victim = spoilt.images / "n90000002" / "n90000002_14.JPEG"
    whole = victim.read_bytes()
    victim.write_bytes(whole[: len(whole) // 2])
    record = spoilt.run(mode=mode)
    assert record["status"] == "failed"
    assert record["reason"].startswith(f"{ENDED} 1: rank "), record["reason"]
    assert f" on localhost: {victim}: no whole image: " in record["reason"]
    assert processes(spoilt.cell) == {}


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
    told = f"{spoilt.images}: the class folder n90000001 is missing"
    assert spoilt.run()["reason"].endswith(f" on localhost: {told}")


@pytest.mark.slow
def test_too_few_images(place: Place) -> None:
    told = "32 images: fewer than the 34 of a minibatch on each rank"
    assert place.run(batch="17")["reason"].endswith(f" on localhost: {told}")


def test_no_images_at_all(place: Place, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    record = Place(tmp_path, tmp_path / "empty").run()
    told = f"{tmp_path}/empty: no JPEG file in any class folder (BURSTLAB_DATA)"
    assert record["reason"] == f"{ENDED} 1: {told}"


def test_a_mode_that_its_storage_does_not_go_with(place: Place) -> None:
    told = "mode ssd on storage pfs: it reads what was staged to nodelocal"
    assert place.run("pfs", mode="ssd")["reason"] == f"{ENDED} 1: {told}"
