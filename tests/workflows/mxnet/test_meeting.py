"""By which network interface gloo goes, and what is told where there is none, or no way."""

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import psutil
import pytest

from burstlab.errors import AllocationError

NO_NAME = "::1"  # which no IPv4 address can be had for, without asking anybody


class Address(NamedTuple):
    address: str


@pytest.fixture
def meeting(module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delenv("HOROVOD_GLOO_IFACE", raising=False)
    return module("meeting")


def test_it_is_the_one_that_leads_to_the_other_host(meeting: ModuleType) -> None:
    assert meeting.interface("here", "127.0.0.1") == "lo"


def test_it_is_the_users_whatever_leads_there(
    meeting: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOROVOD_GLOO_IFACE", "ib0")
    assert meeting.interface("here", NO_NAME) == "ib0"


@pytest.mark.parametrize(
    ("interfaces", "of"),
    [
        ({"lo": "127.0.0.2", "eth0": "10.0.0.1"}, "no interface"),
        ({"lo": "127.0.0.1", "eth0": "127.0.0.1"}, "lo and eth0"),
    ],
)
def test_an_address_that_is_not_of_one_interface(
    meeting: ModuleType, monkeypatch: pytest.MonkeyPatch, interfaces: dict[str, str], of: str
) -> None:
    found = {name: [Address(address)] for name, address in interfaces.items()}
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: found)
    with pytest.raises(meeting.NoGloo) as error:
        meeting.interface("node01", "127.0.0.1")
    assert str(error.value) == (
        f"node01 reaches 127.0.0.1 from 127.0.0.1, which is the address of {of}: "
        "let HOROVOD_GLOO_IFACE name one of lo, eth0"
    )


def test_a_host_that_there_is_no_way_to(meeting: ModuleType) -> None:
    for ask in (meeting.meet, lambda other: meeting.interface("here", other)):
        with pytest.raises(AllocationError, match=f"has no way to {NO_NAME}: .*; let hosts find"):
            ask(NO_NAME)
