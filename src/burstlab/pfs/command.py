"""Mount an emulated parallel file system and serve it, in the foreground."""

import argparse
import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from burstlab.errors import BurstlabError, ConfigurationError
from burstlab.mounts import mounted_at
from burstlab.pfs.emulation import SOURCE, Emulation
from burstlab.pfs.exports import Export, check_names

if TYPE_CHECKING:
    from burstio import EmulatedPfs

DEVICE = "/dev/fuse"
ENDS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
STALLS = signal.SIGUSR1


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
    check_names(exports)
    mountpoint = _usable(arguments.mountpoint, exports)
    check_fuse()
    os.umask(0)
    _allow_many_open_files()
    signal.pthread_sigmask(signal.SIG_BLOCK, {*ENDS, STALLS})
    _say(mountpoint, emulation, exports)
    _serve(mount(mountpoint, emulation, exports))
    return 0


def mount(mountpoint: Path, emulation: Emulation, exports: Iterable[Export]) -> "EmulatedPfs":
    """Mount it; threads of its own serve it. Raises BurstlabError."""
    try:
        from burstio import EmulatedPfs
    except ImportError as error:
        raise ConfigurationError(f"burstio is not here ({error}): make setup builds it") from error
    shown = [(export.name, export.path, export.read_only) for export in exports]
    try:
        return EmulatedPfs(mountpoint, shown, **emulation._asdict())
    except OSError as error:
        raise BurstlabError(f"{mountpoint} can't be mounted: {error}") from error


def _serve(emulated: "EmulatedPfs") -> None:
    """Until it is unmounted, or one of ENDS comes and unmounts it; STALLS stalls and resumes."""

    def end_when_unmounted() -> None:
        emulated.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    serving = threading.Thread(target=end_when_unmounted, name="serving", daemon=True)
    serving.start()
    while signal.sigwait({*ENDS, STALLS}) == STALLS:
        state = "stalled" if emulated.toggle_stall() else "going on"
        print(f"{SOURCE}: {state}", file=sys.stderr, flush=True)
    if serving.is_alive():
        emulated.unmount()


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
    """Raises BurstlabError where FUSE can't be used."""
    try:
        os.close(os.open(DEVICE, os.O_RDWR))
    except OSError as error:
        raise BurstlabError(
            f"{DEVICE} can't be used ({error.strerror}): it needs the kernel module fuse,"
            " and read and write permission for you"
        ) from error
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        raise BurstlabError("fusermount3, which mounts for ordinary users, is not here: apt fuse3")


def _allow_many_open_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _say(mountpoint: Path, emulation: Emulation, exports: list[Export]) -> None:
    for export in exports:
        access = " (read-only)" if export.read_only else ""
        print(f"{SOURCE}: {mountpoint / export.name} shows {export.path}{access}")
    for name, text in _COSTS.items():
        print(f"{SOURCE}: {getattr(emulation, name):g} {text}")
    print(f"{SOURCE}: stop with Ctrl-C, kill {os.getpid()} or fusermount3 -u {mountpoint}")
    print(f"{SOURCE}: stall, and go on, with kill -USR1 {os.getpid()}", flush=True)
