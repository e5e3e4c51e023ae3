"""Two ranks train one network under DDP by each pipeline."""

import pytest

from burstlab.pipelines import MODES
from tests.workflows.trainings.running import Place
from tests.workflows.trainings.test_faults import check_stalled, truncated

pytestmark = [pytest.mark.requires("torch", "burstio"), pytest.mark.slow]


def test_every_pipeline_trains_the_same_network(place: Place) -> None:
    trained = {}
    for mode in MODES:
        record = place.run(mode=mode, validation="25", epochs="3")
        assert record["status"] == "ok", record["reason"] + place.log()
        assert "2 ranks have the same parameters" in (place.cell / "check.log").read_text()
        first, second = place.ranks()
        trained[mode] = first["sha256"]
        # 24 images, 12 for each rank, in minibatches of 4
        assert [epoch["iterations"] for epoch in first["epochs"]] == [3, 3, 3]
        assert [epoch["validated"] for epoch in second["epochs"]] == [4, 4, 4]
        # they learn from images of their own, and one network comes of it only by the all-reduce
        assert first["epochs"][0]["losses"] != second["epochs"][0]["losses"]
        assert all(epoch["phases_s"]["allreduce"] > 0 for epoch in first["epochs"])
        facts = record["workload_facts"]
        assert facts["engine"].startswith("PyTorch ")
        assert facts["collectives"] in ("DDP gloo", "DDP nccl")
    assert len(set(trained.values())) == 1, trained


def test_a_truncated_image(spoilt: Place) -> None:
    """Its rank is heard, not the one that waits for it in an all-reduce."""
    victim, reason = truncated(spoilt, mode="lazy")
    assert f" on localhost: {victim}: no whole image: " in reason


@pytest.mark.requires("fuse")
def test_a_file_system_that_stalls(place: Place) -> None:
    check_stalled(place)
