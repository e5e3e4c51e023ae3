"""Waiting for something to come true, without sleeping for a fixed time."""

import time
from collections.abc import Callable
from typing import Any


def until(
    done: Callable[[], Any], what: str, limit_s: float = 60.0, *, pause_s: float = 0.01
) -> Any:
    """Poll until ``done`` returns something true, which is returned; else fail naming ``what``."""
    deadline = time.monotonic() + limit_s
    while not (value := done()):
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        time.sleep(pause_s)
    return value
