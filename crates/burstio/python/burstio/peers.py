"""Nodes that read for one another: what an engine is told of them."""

import socket
from collections.abc import Mapping
from typing import NamedTuple

LONGEST_QUEUE = 4096  # of connections: the kernel's own limit counts (net.core.somaxconn)


class Peers(NamedTuple):
    """This node, and where the others are; all of them have the same names and key."""

    name: str
    addresses: Mapping[str, str]  # ADDRESS:PORT in numbers, by name, this node among them
    key: bytes  # 32 bytes that only the nodes of the job know (secrets.token_bytes)
    listener: socket.socket  # from `listen`; the engine takes it over

    def __repr__(self) -> str:
        """Without the key: it would be told in tracebacks and logs."""
        return f"Peers(name={self.name!r}, addresses={self.addresses!r})"


def listen(address: str) -> socket.socket:
    """A port of this address, where peers wait until an engine has it. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, 0), family=family, backlog=LONGEST_QUEUE)


def address_of(listener: socket.socket) -> str:
    """ADDRESS:PORT, as ``Peers.addresses`` has it."""
    address, port = listener.getsockname()[:2]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
