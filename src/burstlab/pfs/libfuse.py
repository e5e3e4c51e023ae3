"""libfuse 3 through mfusepy's ctypes definitions.

mfusepy declares the C interface for every libfuse version; its own class ``FUSE`` is not used,
because it loses what a complete file system needs: the flags of rename, the open file in
getattr and truncate, attributes in readdir. Callbacks here get the C arguments as they are.
"""

import ctypes
import functools
import importlib
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from burstlab.errors import BurstlabError, ConfigurationError

SONAMES = ("libfuse3.so.4", "libfuse3.so.3")
WORKERS = 64  # operations served at once; each waits in one thread
LOOP_ENDED = 8  # fuse_main_real's result when a signal ends the loop (fuse.h)
CAP_READDIRPLUS_AUTO, CAP_PARALLEL_DIROPS, CAP_HANDLE_KILLPRIV = 1 << 14, 1 << 18, 1 << 20


@functools.cache
def bindings() -> Any:
    """The module mfusepy, bound to libfuse 3.

    Left alone it prefers libfuse 2, which writes 4 KiB at a time. Raises ConfigurationError.
    """
    soname = next((name for name in SONAMES if _loads(name)), None)
    if soname is None:
        raise ConfigurationError("libfuse 3 is not here: apt-get install fuse3 libfuse3-3")
    os.environ["FUSE_LIBRARY_PATH"] = soname
    try:
        mfusepy = importlib.import_module("mfusepy")
    except ImportError as error:
        raise ConfigurationError(f"the Python package mfusepy is not here ({error})") from error
    if mfusepy.fuse_version_major != 3:
        raise ConfigurationError(f"mfusepy was loaded with {mfusepy._libfuse._name}, not {soname}")
    mfusepy._libfuse.fuse_get_session.restype = ctypes.c_void_p
    return mfusepy


def serve(mountpoint: Path, callbacks: Mapping[str, Callable[..., int]], options: str) -> None:
    """Mount and serve until unmounted, or until SIGTERM, SIGINT or SIGHUP unmounts.

    ``callbacks`` are named as in struct fuse_operations (fuse.h) and return a result or a
    negative errno. Call from the main thread. Raises BurstlabError when it can't be mounted.
    """
    fuse = bindings()

    def init(connection: Any, config: Any) -> int:
        configure(connection.contents, config.contents)
        return 0

    table = fuse.fuse_operations()
    for name, prototype in fuse.fuse_operations._fields_:
        function = init if name == "init" else callbacks.get(name)
        if function is not None:
            setattr(table, name, prototype(function))
    words = ["burstlab-pfs", "-f", "-o", options, os.fspath(mountpoint)]
    arguments = (ctypes.c_char_p * len(words))(*map(os.fsencode, words))
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # libfuse takes only signals nobody has taken
    size = ctypes.sizeof(table)
    result = fuse.fuse_main_real(len(words), arguments, ctypes.byref(table), size, None)
    if result not in (0, LOOP_ENDED):
        raise BurstlabError(f"{mountpoint}: libfuse could not mount it (its own words are above)")


def configure(connection: Any, config: Any) -> None:
    """What the connection to the kernel is to be like (struct fuse_conn_info, fuse_config)."""
    connection.want |= connection.capable & CAP_PARALLEL_DIROPS
    connection.want &= ~(CAP_HANDLE_KILLPRIV | CAP_READDIRPLUS_AUTO)
    connection.max_background = WORKERS
    connection.congestion_threshold = WORKERS * 3 // 4
    config.use_ino = 1
    config.nullpath_ok = 1  # operations on open files get no path


def caller() -> tuple[int, int]:
    """(uid, gid) of the process whose operation this thread serves."""
    context = bindings()._libfuse.fuse_get_context().contents
    return context.uid, context.gid


def looks_up_in_parallel() -> bool:
    """False for a libfuse that never asks the kernel for it (fixed by its pull request 861)."""
    fuse = bindings()
    return (fuse.fuse_version_major, fuse.fuse_version_minor) >= (3, 17)


def ending() -> bool:
    """True when the session that this thread serves is asked to end."""
    library = bindings()._libfuse
    session = library.fuse_get_session(ctypes.c_void_p(library.fuse_get_context().contents.fuse))
    return bool(library.fuse_session_exited(ctypes.c_void_p(session)))


def forget_attributes(path: bytes) -> None:
    """Tell the kernel to ask again for the attributes and data of ``path``."""
    library = bindings()._libfuse
    handle = ctypes.c_void_p(library.fuse_get_context().contents.fuse)
    library.fuse_invalidate_path(handle, ctypes.c_char_p(path))


def _loads(soname: str) -> bool:
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True
