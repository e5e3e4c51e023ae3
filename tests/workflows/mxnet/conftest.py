import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.workflows.trainings.running import MXNET, Workload


@pytest.fixture
def workload() -> Workload:
    return MXNET


@pytest.fixture(scope="session")
def module() -> Callable[[str], ModuleType]:
    """Imports one of the workload's modules, which are on no path."""

    def load(name: str) -> ModuleType:
        own = f"mxnet_{name}"
        spec = importlib.util.spec_from_file_location(own, MXNET.directory / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[own] = module
        spec.loader.exec_module(module)
        return module

    return load
