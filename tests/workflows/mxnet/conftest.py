import pytest

from tests.workflows.trainings.running import MXNET, Workload


@pytest.fixture
def workload() -> Workload:
    return MXNET
