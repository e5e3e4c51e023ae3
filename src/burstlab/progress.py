"""What a cell says while it runs, and the block it prints when it fails."""

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from burstlab.record import Span

FIRST_LINES = 12


class Timeline:
    """The phases of a cell: each is a span, a line in the log, and a clock on a terminal."""

    def __init__(self, title: str) -> None:
        self.spans: list[Span] = []
        self.phase = "allocation"
        self._title = title
        self._since = time.monotonic()
        self._live = sys.stderr.isatty()

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """A phase; its span is kept however the phase ends."""
        started_s, self.phase, self._since = time.time(), name, time.monotonic()
        self._say("...", end="\r" if self._live else "\n")
        try:
            yield
        finally:
            elapsed_s = time.monotonic() - self._since
            self.spans.append(Span(name, started_s, elapsed_s))
            self._say(f"{elapsed_s:.2f} s")

    def tick(self) -> None:
        """Show on a terminal how long the phase has taken so far."""
        if self._live:
            self._say(f"{time.monotonic() - self._since:.0f} s ...", end="\r")

    def _say(self, text: str, end: str = "\n") -> None:
        clock = time.strftime("%H:%M:%S")
        print(f"{clock} {self._title} {self.phase:10} {text}", end=end, file=sys.stderr, flush=True)


def failure_block(
    phase: str,
    reason: str,
    hosts: Sequence[str],
    directory: Path,
    repeat: Sequence[str],
    logs: Sequence[Path],
) -> str:
    """Phase, reason, hosts, directory, the command to run it again, first lines of output."""
    lines = [
        f"FAILED in {phase}: {reason}",
        f"  hosts      {', '.join(hosts) or 'none'}",
        f"  directory  {directory}",
        f"  repeat     cd {shlex.quote(str(Path.cwd()))} && {shlex.join(repeat)}",
    ]
    for log in logs:
        try:
            text = log.read_text(errors="replace").splitlines()
        except OSError:
            continue
        if text:
            lines.append(f"  {log.name} begins ({len(text)} lines)")
            lines += [f"    {line}" for line in text[:FIRST_LINES]]
    return "\n".join(lines)
