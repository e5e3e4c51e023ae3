"""Ports and addresses of this host, for daemons that take a number and bind it themselves."""

import re
import socket
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

_LOCAL = re.compile(r"\|-- ([\d.]+)\n\s+/32 host LOCAL")


class FreePort:
    """A port that nobody has, kept from others until the daemon it is meant for has bound it.

    The socket that keeps it does not listen and allows reuse, as Gfarm's daemons do: they can
    bind the port, while the kernel gives it to nobody who asks for any free one.
    """

    def __init__(self, suits: Callable[[int], bool] = lambda port: True) -> None:
        """Free for TCP and, at this moment, for UDP. Raises OSError when there is none."""
        self._socket = _free_for_tcp()
        while not (_free_for_udp(self.number) and suits(self.number)):
            refused, self._socket = self._socket, _free_for_tcp()
            refused.close()

    @property
    def number(self) -> int:
        """The port."""
        return int(self._socket.getsockname()[1])

    def __enter__(self) -> "FreePort":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()


def listens(port: int) -> bool:
    """Whether a connection to this port of this host is accepted."""
    with socket.socket() as visitor:
        return visitor.connect_ex(("127.0.0.1", port)) == 0


def local_addresses() -> list[str]:
    """The IPv4 addresses of this host, loopback included (proc(5), /proc/net/fib_trie)."""
    return sorted(set(_LOCAL.findall(Path("/proc/net/fib_trie").read_text())))


def misnamed(host: str) -> str:
    """Why other hosts can't mean the same as this one by its name, or nothing.

    gfsd serves the addresses of its interfaces, and Debian's installer writes another one, of
    the loopback, for the host's own name into /etc/hosts.
    """
    try:
        address = socket.gethostbyname(host)
    except OSError as error:
        return f"its name can't be resolved: {error.strerror}; add it to /etc/hosts"
    if address.startswith("127."):
        return f"its name is {address} to itself: give it its network address in /etc/hosts"
    if address not in local_addresses():
        return f"its name is {address}, which is no address of this host: correct /etc/hosts"
    return ""


def _free_for_tcp() -> socket.socket:
    keeper = socket.socket()
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind(("", 0))
    return keeper


def _free_for_udp(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as visitor:
        try:
            visitor.bind(("", port))
        except OSError:
            return False
    return True
