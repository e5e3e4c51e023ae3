"""How a run fails: one line that tells the place, the cause and what to do."""

import re
from pathlib import Path

from burstlab.supervision import ended_how

LONGEST_WORDS = 400  # in a line that srun does not tear
# An event with its stack trace, as configuration.py has log4j write it.
_ERROR = re.compile(r"^\d{4}-\S+ \S+ (?:FATAL|ERROR) (.*(?:\n(?!\d{4}-\d\d-).*)*)", re.M)
_THROWN = re.compile(r"^(?:Caused by: )?((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)\b.*)", re.M)


class Failed(Exception):
    """Nothing of the run goes on."""


def death(daemon: str, returncode: int, log: Path) -> str:
    """That a daemon died and how; no error in its log explains the signal that ended it."""
    how = f"{daemon} died ({ended_how(returncode)})"
    words = last_error(log.read_text(errors="replace")) if returncode >= 0 else ""
    return f"{how}: {words[:LONGEST_WORDS]}" if words else how


def last_error(log: str) -> str:
    """The last event that a daemon calls an error, and its innermost exception; empty for none.

    After a signal that it was told to end by, all errors are that signal's.
    """
    events: list[str] = _ERROR.findall(log)
    told = [event for event in events if "RECEIVED SIGNAL" in event] or events[-1:]
    if not told:
        return ""
    said, _, trace = told[0].partition("\n")
    return ": ".join([said.strip(), *_THROWN.findall(trace)[-1:]])
