"""What rank 0 makes of all ranks' reports."""

from dataclasses import dataclass
from typing import Any

import pytest

from burstlab.training.loop import PHASES
from burstlab.training.parameters import AnyParameters, Parameters
from burstlab.training.report import common_facts, facts, metrics

ABOUT = {"started": [100.0, 101.5], "images": 24, "shard": 12}
ABOUT |= dict.fromkeys(("engine", "device", "collectives"), "any")


def rank(start_s: float, load_s: float) -> dict[str, Any]:
    """Two epochs from ``start_s`` of its host's clock on, one right after the other."""
    phases_s = {**dict.fromkeys(PHASES, 1.0), "load": load_s}
    took_s = sum(phases_s.values()) + 2.0
    told = {"phases_s": phases_s, "validation_s": 2.0, "iterations": 3, "images": 12}
    told |= {
        "right": 6,
        "first_loads_s": [0.5],
        "validated": 4,
        "validated_right": 1,
        "losses": [2.0],
    }
    return {"epochs": [{"start_s": start_s + at * took_s, **told} for at in range(2)]}


@pytest.mark.parametrize("behind_s", [0.0, 3600.0, -3600.0])
def test_clocks_of_two_hosts_may_differ(behind_s: float) -> None:
    """The slowest rank's time by its own clock: 2 epochs of 4 + 5 + 2 s."""
    ranks = [rank(5000.0, load_s=1.0), rank(5000.0 - behind_s, load_s=5.0)]
    found = {one["name"]: one["value"] for one in metrics(ranks, ABOUT)}
    assert found["training_time"] == pytest.approx(22.0)
    assert found["throughput"] == pytest.approx(48 / 22.0, rel=1e-5)
    assert found["process_start_time"] == 1.5


def test_every_parameter_is_told_wherever_it_came_from() -> None:
    environment = {"CHAINERMN_COPIERS": "16", "CHAINERMN_GENERATION": "8", "DDP_PATIENCE": "5"}
    chosen = Parameters.of("chainermn", environment)
    told = facts(chosen, [rank(0.0, 1.0)], ABOUT)["parameters"]
    assert told == (
        "network=resnet50,batch=32,epochs=10,side=224,ranks=4,mode=lazy,generation=8,copiers=16,"
        "patience=300,validation=0,schedule=100"
    )


def test_every_training_tells_its_own_parameters() -> None:
    @dataclass(frozen=True)
    class Own(AnyParameters):
        readers: int = 3

    told = common_facts(Own(), [rank(0.0, 1.0)], ABOUT)["parameters"]
    assert str(told).endswith(",readers=3")
