import pytest

from tests.workflows.trainings.running import CHAINERMN, Workload


@pytest.fixture
def workload() -> Workload:
    return CHAINERMN
