"""A double of the archive at IPAC, for the real mArchiveList, mArchiveExec and wget.

They reach it as their HTTP proxy, so nothing leaves the machine. The facts it stands for:

* mArchiveList asks a proxy for `http://montage-web.ipac.caltech.edu:80/cgi-bin/ArchiveList/
  nph-archivelist?survey=2mass+J&location=...&size=DIAGONAL&units=deg&mode=TBL`, HTTP/1.0, and
  copies the answer into its table from the first line that is neither the status, nor
  `Content-type`, nor empty: so the service sends no other header. A line `{"error":"..."}` is an
  error; whatever else comes is taken for a table, a page of HTML too.
  Source: Caltech-IPAC/Montage, MontageLib/ArchiveList/montageArchiveList.c.
* The table is IPAC ASCII with, last, the columns URL and file; `file` ends in `.fits.gz`, and the
  URLs are `http://irsa.ipac.caltech.edu/ibe/data/twomass/full/full/<night>/s<scan>/image/*.fits.gz`.
  Source: krzysztofxkwiecien/montage-workflow, data-container/montage1.0/input/images.tbl,
  written by mArchiveList in 2018.
* mArchiveExec fetches each URL with wget, then calls gunzip where `file` ends in `.gz`. Failures
  are counted, in an answer that says OK with exit status 0 all the same; the end of wget is not
  looked at, only that it told a size.
  Source: montageArchiveExec.c and montageArchiveGet.c of the same repository.
"""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HEAD = r"""\datatype=fitshdr
|   cntr|  ctype1|  ctype2|naxis1|naxis2|    crval1|    crval2|{url:>120}|{file:>50}|
|    int|    char|    char|   int|   int|    double|    double|{char:>120}|{char:>50}|
"""
ROW = " {number:7} RA---SIN DEC--SIN    512   1024  84.190672  -5.468328 {url:>120} {file:>50}\n"
URL = "http://irsa.ipac.caltech.edu/ibe/data/twomass/full/full/001124n/s090/image/"


@dataclass
class Archive:
    """Tiles by name without `.gz`; what goes wrong, and what was asked for."""

    tiles: Mapping[str, bytes]
    answer: str | None = None  # to mArchiveList, instead of the table
    missing: set[str] = field(default_factory=set)
    cut_short: set[str] = field(default_factory=set)
    regions: list[dict[str, list[str]]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    stalls_at: int = 0  # the number of the request that is answered when it goes on
    stalled: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)

    def table(self) -> str:
        files = [f"{name}.gz" for name in self.tiles]
        rows = (ROW.format(number=i, url=URL + f, file=f) for i, f in enumerate(files, 1))
        return HEAD.format(url="URL", file="file", char="char") + "".join(rows)

    def tile(self, name: str) -> bytes | None:
        self.asked.append(name)
        if len(self.asked) == self.stalls_at:
            self.stalled.set()
            self.goes_on.wait(60)
        if name in self.missing or name not in self.tiles:
            return None
        content = gzip.compress(self.tiles[name], mtime=0)
        return content[: len(content) // 2] if name in self.cut_short else content


@contextmanager
def served(archive: Archive) -> Iterator[str]:
    """The archive behind a proxy on this machine; yields the proxy's address."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path.endswith("nph-archivelist"):
                archive.regions.append(parse_qs(url.query))
                self._send(200, "text/plain", (archive.answer or archive.table()).encode())
                return
            content = archive.tile(url.path.rsplit("/", 1)[-1].removesuffix(".gz"))
            self._send(404 if content is None else 200, "application/x-gzip", content or b"")

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response_only(status)
            self.send_header("Content-type", kind)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing: the archive remembers what it was asked."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
