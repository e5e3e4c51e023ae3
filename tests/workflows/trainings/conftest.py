import pytest

from .running import CHAINERMN, MXNET, Workload

NEEDED = {"mxnet": ["mxnet"], "chainermn": ["chainer", "burstio"]}
EACH = [
    pytest.param(one, id=one.name, marks=pytest.mark.requires(*NEEDED[one.name]))
    for one in (MXNET, CHAINERMN)
]


@pytest.fixture(params=EACH)
def workload(request: pytest.FixtureRequest) -> Workload:
    """Every training in turn."""
    each: Workload = request.param
    return each
