"""Calling ``beeond``: a start that may wait for ever, and a stop that may do nothing at all."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from burstlab.errors import StorageError
from burstlab.lease import Lease
from burstlab.storage.beeond.processes import calls, end
from burstlab.storage.beeond.session import Session, errors, lost
from burstlab.supervision import ended_how

CHILD = "beeond"
TAKE_DOWN = "burstlab.storage.beeond.command:take_down"
ASK_S = 2.0  # for a call of beeond to end after SIGTERM


def start(
    session: Session, lease: Lease, words: Sequence[str], limit_s: float, stop_limit_s: float
) -> None:
    """Call ``beeond start``. Raises StorageError with its reason, or when ``limit_s`` is over.

    Whatever it had started by then goes on running: only ``take_down`` ends it.
    """
    output = Path(f"{session.nodes}.start.log")
    _write_node_file(session, session.hosts)
    lease.undo(TAKE_DOWN, session=session.as_json(), limit_s=stop_limit_s)
    status = _run(session, lease, words, output, limit_s)
    reasons = errors(output.read_text(errors="replace"))[-2:]
    if status is None:
        raise StorageError(
            f"beeond start did not end within {limit_s:g} s (-o start_limit_s): "
            f"{'; '.join(reasons) or 'it waits for servers that never came'}"
        )
    if status:
        raise StorageError(f"beeond start: {'; '.join(reasons) or ended_how(status)}")


def take_down(lease: Lease, session: dict[str, Any], limit_s: float) -> list[str]:
    """Undo a start, finished or not: end it, then ``beeond stop`` on the hosts that are there.

    One host that can't be reached makes ``beeond stop`` do nothing on any, so it is called again
    without that host. Its exit status and its silence prove nothing: each host is looked at
    afterwards (``burstlab.storage.beeond.node:clear``), by its own lease if by nobody else.
    """
    own = Session.of_json(session)
    end(calls(own), own.prefix, ASK_S)
    output = Path(f"{own.nodes}.stop.log")
    hosts = own.hosts
    while hosts:
        _write_node_file(own, hosts)
        if _run(own, lease, own.stop(), output, limit_s) is None:
            return [f"beeond stop did not end within {limit_s:g} s (-o stop_limit_s)"]
        if not (gone := lost(output.read_text(errors="replace"), hosts)):
            break
        hosts = tuple(host for host in hosts if host not in gone)
    return []


def _run(
    session: Session, lease: Lease, words: Sequence[str], output: Path, limit_s: float
) -> int | None:
    """The status of a child in a session of its own; None when it was ended for being late."""
    with output.open("wb") as log:
        child = lease.spawn(words, CHILD, log, directory="/")
    try:
        return child.wait(limit_s)
    except subprocess.TimeoutExpired:
        end(calls(session), session.prefix, ASK_S)
        child.poll()
        return None
    finally:
        del lease.children[CHILD]


def _write_node_file(session: Session, hosts: Sequence[str]) -> None:
    Path(session.nodes).write_text("".join(f"{host}\n" for host in hosts))
