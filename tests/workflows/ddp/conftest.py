import pytest

from tests.workflows.trainings.running import DDP, Workload


@pytest.fixture
def workload() -> Workload:
    return DDP
