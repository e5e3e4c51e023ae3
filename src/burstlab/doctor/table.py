"""Findings as a table: coloured in a terminal, plain and one line each elsewhere."""

from collections.abc import Sequence
from typing import TextIO

from burstlab.doctor.findings import Finding, State

_COLOURS = {State.READY: "green", State.LIMITED: "yellow", State.MISSING: "red"}


def show(findings: Sequence[Finding], stream: TextIO) -> None:
    """Print all findings, and whether the demo can run."""
    if stream.isatty():
        _coloured(findings, stream)
    else:
        _plain(findings, stream)
    missing = lacking(findings)
    if missing:
        print(f"The demo can't run here: {', '.join(missing)}", file=stream)
    else:
        print("The demo can run here: make demo", file=stream)


def lacking(findings: Sequence[Finding]) -> list[str]:
    """What the demo needs and this machine has not."""
    return [f.subject for f in findings if f.needed and f.state is State.MISSING]


def _plain(findings: Sequence[Finding], stream: TextIO) -> None:
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        print(f"{finding.state.value:7}  {finding.subject:{width}}  {finding.detail}", file=stream)
        if finding.remedy:
            print(f"{'':7}  {'':{width}}  -> {finding.remedy}", file=stream)


def _coloured(findings: Sequence[Finding], stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("", "what", "found", "to change that"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        state = Text(finding.state.value, style=_COLOURS[finding.state])
        table.add_row(state, Text(finding.subject), Text(finding.detail), Text(finding.remedy))
    Console(file=stream).print(table)
