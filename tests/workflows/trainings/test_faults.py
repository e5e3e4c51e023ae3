"""Whatever strikes a training, the record tells what it was and nothing runs on."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from burstlab.dataset.manifest import members
from burstlab.dataset.writing import scan, write_manifest
from tests.pfs.emulator import FREE, emulated
from tests.polling import until

from .running import DEADLINE_S, ENDED, Place, process, processes


@pytest.mark.slow
def test_a_rank_is_killed_while_all_train(place: Place) -> None:
    # with chainermn, paper3 has the most processes that could be left
    told = f"{ENDED} 137: rank 1 on localhost was killed by SIGKILL"
    assert struck(place, "1", mode="paper3") == told


def struck(place: Place, which: str, **parameters: str) -> str:
    """Why a training failed, one of whose processes was killed; nothing of it is left."""
    run = place.start(**parameters, epochs="100000")
    try:
        trains = "epoch 1 of"
        until(lambda: trains in place.log() or run.poll() is not None, "all train", DEADLINE_S)
        os.kill(process(place.cell, which), signal.SIGKILL)
        run.wait(DEADLINE_S)
    finally:
        run.terminate()
        run.wait(DEADLINE_S)
    record = place.record()
    assert record["status"] == "failed"
    assert processes(place.cell) == {}
    reason: str = record["reason"]
    return reason


def truncated(spoilt: Place, **parameters: str) -> tuple[Path, str]:
    """Half an image among the others, and why the training failed."""
    victim = spoilt.images / "n90000002" / "n90000002_14.JPEG"
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    record = spoilt.run(**parameters)
    assert record["status"] == "failed"
    assert record["reason"].startswith(f"{ENDED} 1: rank "), record["reason"]
    assert processes(spoilt.cell) == {}
    return victim, record["reason"]


def check_stalled(place: Place) -> None:
    """A training whose images' file system stalls ends with the name of one of them."""
    with emulated(place.root / "emulated", *FREE, backing=place.images) as pfs:
        reads = Place(place.root, pfs.work, place.workload)
        run = reads.start(patience="1", epochs="100000")
        try:
            trains = "epoch 1 of"
            until(lambda: trains in reads.log() or run.poll() is not None, "all train", DEADLINE_S)
            pfs.stall()
            try:
                told = f"{pfs.work}/"
                until(lambda: told in reads.log() or run.poll() is not None, "a name", DEADLINE_S)
            finally:
                pfs.go_on()  # what hangs in the kernel can't end before
            run.wait(DEADLINE_S)
        finally:
            run.terminate()
            run.wait(DEADLINE_S)
        assert processes(reads.cell) == {}
        record = reads.record()
    named = rf"{ENDED} 1: rank [01] on localhost: .*{pfs.work}/n[0-9]+/\S+\.JPEG: not read in time"
    assert re.match(named, record["reason"]), record["reason"]


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
    record = Place(tmp_path, tmp_path / "empty", place.workload).run()
    told = f"{tmp_path}/empty: no JPEG file in any class folder (BURSTLAB_DATA)"
    assert record["reason"] == f"{ENDED} 1: {told}"
