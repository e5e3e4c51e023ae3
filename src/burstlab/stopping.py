"""Turns the signals that end a cell, and its time limit, into one exception.

SIGTERM and SIGINT come from users and schedulers; SIGHUP from a lost terminal; SIGUSR1, SIGUSR2
and SIGXCPU are the warning signals of Slurm (`--signal`), Grid Engine (`-notify`) and PBS.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXCPU,
)
TIME_LIMIT_STATUS = 124  # as timeout(1)


class Stopped(BaseException):
    """The cell was told to stop; ``status`` is the exit status that says by what.

    No Exception: nothing that handles failures may take it for one.
    """

    def __init__(self, number: int, time_limit_s: float) -> None:
        timed_out = number == signal.SIGALRM
        super().__init__(
            f"time limit of {time_limit_s:g} s reached"
            if timed_out
            else f"stopped by {signal.Signals(number).name}"
        )
        self.status = TIME_LIMIT_STATUS if timed_out else 128 + number


_deferring = 0
_deferred: Stopped | None = None


@contextmanager
def deferred() -> Iterator[None]:
    """A stop signal that comes meanwhile is raised at the end; for steps of milliseconds."""
    global _deferring, _deferred
    _deferring += 1
    try:
        yield
    finally:
        _deferring -= 1
        if _deferred is not None and not _deferring:
            stopped, _deferred = _deferred, None
            raise stopped


class StopSignals:
    """While active, the first stop signal raises Stopped in the main thread.

    ``hold`` ends that: what comes later is only remembered, so a teardown is never cut short.
    """

    def __init__(self, time_limit_s: float) -> None:
        self._time_limit_s = time_limit_s
        self._held = False

    def hold(self) -> None:
        """From now on no signal interrupts."""
        self._held = True
        signal.setitimer(signal.ITIMER_REAL, 0)

    @contextmanager
    def active(self) -> Iterator["StopSignals"]:
        """Install the handlers and the time limit (0: none); restore the old ones after."""
        numbers = (*STOP_SIGNALS, signal.SIGALRM)
        before = {number: signal.signal(number, self._stop) for number in numbers}
        signal.setitimer(signal.ITIMER_REAL, self._time_limit_s)
        try:
            yield self
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        global _deferred
        if self._held:
            return
        self._held = True
        stopped = Stopped(number, self._time_limit_s)
        if not _deferring:
            raise stopped
        _deferred = stopped
