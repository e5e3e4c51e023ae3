"""What every process of a pipeline does first, how it tells an error, and how it is ended."""

import atexit
import multiprocessing.process
import os
import pickle
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

PATIENCE_S = 5.0


def settle() -> None:
    """Leave Ctrl-C to the parent, and end when it has ended, however that came."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait([parent.sentinel])
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()


def portable(error: Exception) -> Exception:
    """The same error if it survives pickling, else one that says what it said."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def end(processes: Sequence[BaseProcess]) -> None:
    """Kill them, and wait for them: together no longer than PATIENCE_S.

    A read of a stalled file system may hold one beyond all signals. It ends with that read, and
    neither this process nor Python at its own end waits for it.
    """
    for process in processes:
        process.kill()
    deadline = time.monotonic() + PATIENCE_S
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if not wait([process.sentinel], 0):
            atexit.register(_leave, process)


def _leave(process: BaseProcess) -> None:
    # What multiprocessing joins at its end, without a limit.
    multiprocessing.process._children.discard(process)  # type: ignore[attr-defined]
