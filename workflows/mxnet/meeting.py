"""Where ranks that have no MPI meet: gloo's rendezvous, as `horovodrun` has one.

A store of what each rank says of itself, which the others ask for until it is there (Horovod's
HTTPStore). It lives as long as the launcher.
"""

import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from burstlab.allocation import own_address
from burstlab.errors import BurstlabError

INTERFACE = "HOROVOD_GLOO_IFACE"


class NoGloo(BurstlabError):
    """Why the ranks can't do without MPI."""


class Meeting(BaseHTTPRequestHandler):
    """PUT, GET and DELETE of /SCOPE/KEY."""

    said: ClassVar[dict[str, bytes]] = {}  # of the one meeting that a launcher has

    def do_PUT(self) -> None:
        self.said[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200)

    def do_GET(self) -> None:
        found = self.said.get(self.path)
        self._answer(404 if found is None else 200, found or b"")

    def do_DELETE(self) -> None:
        self._answer(200)  # a rank has met all others: nothing to be done

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, status: int, content: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def meet(other: str) -> tuple[str, int]:
    """Address and port of a meeting on this host, which the host ``other`` can reach."""
    server = ThreadingHTTPServer((own_address(other, socket.AF_INET), 0), Meeting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return str(server.server_address[0]), server.server_port


def interface(host: str, other: str) -> str:
    """The network interface of ``host``, which this is, that gloo is to take: the one that the
    user has named, else the one that leads to ``other``. Raises NoGloo and AllocationError."""
    if given := os.environ.get(INTERFACE):
        return given
    import psutil  # in the ranks' Python, as Horovod needs it

    own = own_address(other, socket.AF_INET)
    known = {name: {one.address for one in them} for name, them in psutil.net_if_addrs().items()}
    found = [name for name, addresses in known.items() if own in addresses]
    if len(found) == 1:
        return found[0]
    raise NoGloo(
        f"{host} reaches {other} from {own}, which is the address of "
        f"{' and '.join(found) or 'no interface'}: let {INTERFACE} name one of {', '.join(known)}"
    )
