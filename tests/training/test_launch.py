"""What a launcher gives its ranks beside their parameters."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from burstlab.training import launch
from burstlab.training.parameters import AnyParameters

Given = dict[str, str]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Given:
    """Filled with the name of the environment, and the variables of ranks that are not started."""
    found: Given = {}

    def prepare(cell: Path, environment: str, chosen: AnyParameters) -> str:
        found["environment"] = environment
        return "python3"

    def run(
        argv: Sequence[str], variables: Mapping[str, str], per_host: int, name: str
    ) -> tuple[int, str]:
        found.update(variables)
        return 0, ""

    monkeypatch.setattr(launch, "prepare", prepare)
    monkeypatch.setattr(launch.ranks, "run", run)
    monkeypatch.setenv("BURSTLAB_CELL_DIR", str(tmp_path))
    return found


@pytest.mark.parametrize(("workload", "own"), [("chainermn", "chainer"), ("ddp", "torch")])
def test_pipelines_fork_in_an_environment_that_is_not_the_workloads_name(
    given: Given, workload: str, own: str
) -> None:
    assert launch.main(workload, Path("train.py")) == 0
    assert (given["environment"], given["RDMAV_FORK_SAFE"]) == (own, "1")
    assert given[f"{workload}_MODE".upper()] == "lazy"


def test_what_forks_nothing_is_told_its_own(given: Given) -> None:
    assert launch.main("mxnet", Path("train.py"), AnyParameters, lambda _: {"MXNET_X": "1"}) == 0
    assert (given["environment"], given["MXNET_X"]) == ("mxnet", "1")
    assert "RDMAV_FORK_SAFE" not in given
