"""Ports that two cells on one host can't both get."""

import socket

import pytest

from burstlab.storage.gfarm.network import FreePort, listens, local_addresses, misnamed


def test_a_kept_port_is_for_daemons_that_allow_reuse_only() -> None:
    with FreePort() as port:
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("", port.number))
        with socket.socket() as daemon:
            daemon.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            daemon.bind(("", port.number))
            assert not listens(port.number)
            daemon.listen()
            assert listens(port.number)


def test_ports_kept_at_once_are_different() -> None:
    ports = [FreePort() for _ in range(50)]
    try:
        assert len({port.number for port in ports}) == len(ports)
    finally:
        for port in ports:
            port.__exit__(None, None, None)


def test_a_port_in_use_for_udp_or_refused_by_the_caller_is_passed_over() -> None:
    asked: list[int] = []

    def second_only(number: int) -> bool:
        asked.append(number)
        return len(asked) == 2

    with FreePort(second_only) as port:
        assert asked[1] == port.number != asked[0]


def test_loopback_is_an_address_of_this_host() -> None:
    assert "127.0.0.1" in local_addresses()
    for address in local_addresses():
        socket.inet_aton(address)


@pytest.mark.parametrize(
    ("address", "told"),
    [("127.0.1.1", "its name is 127.0.1.1 to itself"), ("203.0.113.9", "no address of this host")],
)
def test_a_host_that_others_would_not_find_by_its_name_is_told(
    address: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostbyname", lambda name: address)
    assert told in misnamed("node01")


def test_a_name_that_means_nothing_is_told() -> None:
    assert "can't be resolved" in misnamed("no-such-host.invalid")
