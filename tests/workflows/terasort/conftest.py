"""The workload's own modules, which know each other by their file names alone."""

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from .running import DIRECTORY


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports one of them; other workloads may have modules of the same names."""
    names = [path.stem for path in DIRECTORY.glob("*.py")]
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    monkeypatch.syspath_prepend(DIRECTORY)
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(before)
