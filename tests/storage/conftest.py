"""A lab for the tests whose storage is provisioned on several hosts."""

from collections.abc import Iterator

import pytest

from tests.storage.elsewhere import Elsewhere, Lab, four_nodes
from tests.storage.provisioned import Case


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with four_nodes() as lab:
        yield lab


def pytest_itemcollected(item: pytest.Item) -> None:
    """Such a test has the lab before anybody looks for what the test itself leaves behind."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return
    if any(isinstance(of, Case) and of.launch for of in item.callspec.params.values()):
        at = item.fixturenames.index("test_leaves_nothing")
        item.fixturenames = [*item.fixturenames[:at], "lab", *item.fixturenames[at:]]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """The body of a test on a storage that is elsewhere runs there."""
    fresh = pyfuncitem.funcargs.get("fresh")
    if not isinstance(fresh, Elsewhere):
        return None
    fresh.run(pyfuncitem.originalname)
    return True
