"""Where ranks that have no MPI meet: gloo's rendezvous, as `horovodrun` has one.

A store of what each rank says of itself, which the others ask for until it is there (Horovod's
HTTPStore). It lives as long as the launcher.
"""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from burstlab.allocation import own_address


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
