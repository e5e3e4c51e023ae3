"""What can go wrong with MXNet alone."""

import pytest

from tests.workflows.trainings.running import ENDED, Place
from tests.workflows.trainings.test_faults import struck, truncated

pytestmark = pytest.mark.requires("mxnet")


@pytest.mark.slow
def test_mpirun_is_killed_while_all_train(place: Place) -> None:
    assert struck(place, "mpirun") == f"{ENDED} 137: mpirun: killed by SIGKILL"


@pytest.mark.slow
def test_a_rank_is_killed_whose_gradients_go_over_gloo(place: Place) -> None:
    told = f"{ENDED} 137: rank 1 on localhost was killed by SIGKILL"
    assert struck(place, "1", collectives="gloo") == told


@pytest.mark.slow
@pytest.mark.parametrize(("format", "collectives"), [("jpeg", "gloo"), ("recordio", "mpi")])
def test_a_truncated_image(spoilt: Place, format: str, collectives: str) -> None:
    victim, reason = truncated(spoilt, format=format, collectives=collectives)
    told = f"no other rank tells what that one did to it: {spoilt.log()}"
    assert spoilt.log().count("mxnet: rank ") == 1, told
    told = f"{victim}: is truncated ({victim.stat().st_size} bytes without an end of image)"
    assert reason.endswith(f" on localhost: {told}")


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"format": "png"}, "MXNET_FORMAT=png: there are recordio, jpeg"),
        ({"collectives": "nccl"}, "MXNET_COLLECTIVES=nccl: there are mpi, gloo"),
        ({"batch": "0"}, "MXNET_BATCH=0: a whole number from 1 is wanted"),
    ],
)
def test_a_wrong_parameter(place: Place, parameters: dict[str, str], told: str) -> None:
    assert place.run(**parameters)["reason"] == f"{ENDED} 1: {told}"


@pytest.mark.slow
def test_a_network_that_only_mxnet_knows_not_to_be(place: Place) -> None:
    reason = place.run(network="resnet51")["reason"]
    assert reason.startswith(f"{ENDED} 1: rank ")
    assert "Model resnet51 is not supported" in reason
