"""Mount an emulated parallel file system and serve it, in the foreground."""

import argparse
import os
import resource
import shutil
import signal
import sys
import threading
from pathlib import Path

from burstlab.errors import BurstlabError, ConfigurationError
from burstlab.mounts import mounted_at
from burstlab.pfs import libfuse
from burstlab.pfs.attributes import ExtendedAttributes
from burstlab.pfs.costs import Costs
from burstlab.pfs.data import Data
from burstlab.pfs.emulation import SOURCE, Emulation
from burstlab.pfs.exports import Export, Exports
from burstlab.pfs.libc import sleep_exactly
from burstlab.pfs.names import Names

# What a client may go on believing without asking the server (docs/emulated-pfs.md).
NAMES_VALID_S, ATTRIBUTES_VALID_S = 30, 3  # nfs(5): acdirmin, acregmin
DEVICE = "/dev/fuse"


class EmulatedFileSystem(Names, ExtendedAttributes, Data):
    """All operations."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The mount point, the exports and the costs."""
    parser.add_argument("mountpoint", type=Path, help="an existing directory")
    parser.add_argument(
        "--export",
        action="append",
        default=[],
        metavar="NAME=DIRECTORY[:ro]",
        help="show DIRECTORY as MOUNTPOINT/NAME; may be given many times",
    )
    for name, default in Emulation._field_defaults.items():
        flag, text = f"--{name.replace('_', '-')}", f"{_COSTS[name]} (%(default)g)"
        parser.add_argument(flag, type=_cost, default=default, metavar="N", help=text)


def main(arguments: argparse.Namespace) -> int:
    """Serve until unmounted or told to end; returns 0. Raises BurstlabError."""
    emulation = Emulation(**{name: getattr(arguments, name) for name in Emulation._fields})
    exports = [Export.parse(text) for text in arguments.export]
    mountpoint = _usable(arguments.mountpoint, exports)
    system = EmulatedFileSystem(Exports(exports), Costs(emulation))
    check_fuse()
    os.umask(0)
    _allow_many_open_files()
    sleep_exactly()
    _stall_on_signal(system)
    _say(mountpoint, emulation, exports)
    libfuse.serve(mountpoint, system.callbacks(), _mount_options())
    return 0


_COSTS = {
    "metadata_latency_ms": "milliseconds of each operation on names and attributes",
    "io_latency_ms": "milliseconds of each read and of each commit",
    "bandwidth_mb_s": "MB/s (1e6) of all clients together; 0: no limit",
    "metadata_rate": "metadata operations/s of all clients together; 0: no limit",
}


def _cost(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: give a number from 0")
    return value


def _usable(given: Path, exports: list[Export]) -> Path:
    if there := mounted_at(given):  # first: a dead mount can't even be looked at
        raise ConfigurationError(f"{given}: {there.type} is mounted there already")
    if not given.is_dir():
        raise ConfigurationError(f"{given} is no directory: make it first")
    mountpoint = given.resolve()
    for export in exports:
        if mountpoint == export.path or mountpoint in export.path.parents:
            raise ConfigurationError(f"{given}: the mount would hide its own export {export.path}")
        if export.path in mountpoint.parents:
            raise ConfigurationError(f"{given} lies in its own export {export.path}")
    return mountpoint


def check_fuse() -> None:
    """Raises BurstlabError or ConfigurationError where FUSE, or libfuse 3, can't be used."""
    try:
        os.close(os.open(DEVICE, os.O_RDWR))
    except OSError as error:
        raise BurstlabError(
            f"{DEVICE} can't be used ({error.strerror}): it needs the kernel module fuse,"
            " and read and write permission for you"
        ) from error
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        raise BurstlabError("fusermount3, which mounts for ordinary users, is not here: apt fuse3")
    libfuse.bindings()


def _mount_options() -> str:
    options = [f"fsname={SOURCE}", f"subtype={SOURCE}", "default_permissions"]
    options += [f"entry_timeout={NAMES_VALID_S}", f"attr_timeout={ATTRIBUTES_VALID_S}"]
    options += [f"max_threads={libfuse.WORKERS}", f"max_idle_threads={libfuse.WORKERS}"]
    if os.geteuid() == 0:
        options.append("allow_other")
    return ",".join(options)


def _allow_many_open_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _stall_on_signal(system: EmulatedFileSystem) -> None:
    """SIGUSR1 stalls and resumes. The main thread is in libfuse, so another one takes it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

    def toggle() -> None:
        while True:
            signal.sigwait({signal.SIGUSR1})
            state = "stalled" if system.toggle_stall() else "going on"
            print(f"{SOURCE}: {state}", file=sys.stderr, flush=True)

    threading.Thread(target=toggle, name="stall", daemon=True).start()


def _say(mountpoint: Path, emulation: Emulation, exports: list[Export]) -> None:
    for export in exports:
        access = " (read-only)" if export.read_only else ""
        print(f"{SOURCE}: {mountpoint / export.name} shows {export.path}{access}")
    for name, text in _COSTS.items():
        print(f"{SOURCE}: {getattr(emulation, name):g} {text}")
    if not libfuse.looks_up_in_parallel():
        print(f"{SOURCE}: libfuse before 3.17: names of one directory are looked up one at a time")
    print(f"{SOURCE}: stop with Ctrl-C, kill {os.getpid()} or fusermount3 -u {mountpoint}")
    print(f"{SOURCE}: stall, and go on, with kill -USR1 {os.getpid()}", flush=True)
