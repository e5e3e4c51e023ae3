import pytest

from .running import CHAINERMN, DDP, MXNET, Workload

NEEDED = {"mxnet": ["mxnet"], "chainermn": ["chainer", "burstio"], "ddp": ["torch", "burstio"]}
EACH = [
    pytest.param(one, id=one.name, marks=pytest.mark.requires(*NEEDED[one.name]))
    for one in (MXNET, CHAINERMN, DDP)
]


@pytest.fixture(params=EACH)
def workload(request: pytest.FixtureRequest) -> Workload:
    """Every training in turn."""
    each: Workload = request.param
    return each
