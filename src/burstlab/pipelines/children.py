"""What every process of a pipeline does first, and how it tells an error."""

import os
import pickle
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait


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
