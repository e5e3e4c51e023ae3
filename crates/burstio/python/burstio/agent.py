"""The agent of a node: one engine for all its ranks. ``python -m burstio.agent --help``.

Programs that know nothing of it find the data set in a directory (``--mount``), while the cache is
filled in the order of a list (``--order``).

Agents of several nodes may read for one another (``--peers NAME ADDRESS``). Each then says
``listening ADDRESS:PORT`` and waits for a line on its standard input, the same for all of them:
``{"key": "64 hexadecimal digits", "addresses": {"NAME": "ADDRESS:PORT", ...}}``.

It says ``ready`` on its standard output when ranks may connect, and ends, after all it has read
is written, at SIGTERM, SIGINT, or with ``--while-stdin`` at the end of its standard input.
"""

import argparse
import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from burstio._burstio import Engine, Mount
from burstio.peers import Peers, address_of, listen

SIGNALS = {signal.SIGTERM, signal.SIGINT}


def main() -> int:
    """Serve until told to end; 1 where a read, the disk or a user could not be waited for."""
    arguments = _parser().parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # before there are threads
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # for reads, and for many peers
    try:
        data = _data(arguments)
        engine = _engine(data, _peers(arguments), arguments)
        agent = engine.serve(arguments.socket)
        mount = _mount(engine, data.files, arguments)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"burstio.agent: {error}", file=sys.stderr)
        return 2
    print("ready", flush=True)
    if arguments.while_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    signal.sigwait(SIGNALS)
    stuck = agent.close() + _unmount(mount)  # who waits in the directory is told so first
    if arguments.statistics:
        report = {**engine.statistics(), "waits": engine.waits()}
        report["peer_faults"] = engine.peer_faults()
        arguments.statistics.write_text(json.dumps(report) + "\n")
    return 1 if stuck else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m burstio.agent", description=__doc__)
    add = parser.add_argument
    add("--socket", type=Path, required=True, help="in a directory that is yours alone")
    add("--root", type=Path, help="of the data set; default: the manifest's")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--manifest", type=Path, help="of burstlab, which names files and sizes")
    given.add_argument("--files", type=Path, help="a list of paths below the root, one a line")
    add("--memory-bytes", type=int, default=256 << 20)
    add("--in-flight", type=int, nargs=2, default=(8, 256), metavar=("FEWEST", "MOST"))
    add("--look-ahead", type=int, default=16384, help="samples")
    add("--cache", type=Path, help="directory on node-local storage")
    add("--cache-bytes", type=float)
    add("--cache-keep-free", type=float, default=0.05, help="share of the file system")
    add("--keep", action="store_true", help="leave the cache for a later run")
    add("--no-segments", action="store_true", help="a file of its own for every sample cached")
    add("--no-tee", action="store_true", help="write to the cache first, then read it again")
    add("--peers", nargs=2, metavar=("NAME", "ADDRESS"), help="of this node, for the others")
    add("--time-limit-s", type=float, default=30.0)
    add("--mount", type=Path, help="show the data set in this directory, read only (FUSE)")
    add("--order", type=Path, help="paths, one a line: in which order the cache is filled")
    add("--statistics", type=Path, help="write the counters here at the end, as JSON")
    add("--while-stdin", action="store_true", help="end with the standard input")
    return parser


class _Data(NamedTuple):
    root: Path
    files: list[str]
    sizes: list[int] | None
    identity: str


def _data(arguments: argparse.Namespace) -> _Data:
    root = arguments.root
    if arguments.manifest:
        manifest = json.loads(arguments.manifest.read_bytes())
        files, sizes, *_ = zip(*manifest["entries"], strict=True)
        root = root or arguments.manifest.parent / manifest["root"]
        return _Data(root, list(files), list(sizes), manifest["sha256"])
    if root is None:
        raise ValueError("--files wants a --root")
    return _Data(root, _lines(arguments.files), None, "")


def _peers(arguments: argparse.Namespace) -> Peers | None:
    """All of them, once somebody tells who they are."""
    if arguments.peers is None:
        return None
    name, address = arguments.peers
    listener = listen(address)
    print(f"listening {address_of(listener)}", flush=True)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # there is nothing to be written yet
    line = sys.stdin.buffer.readline()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    if not line:
        raise ValueError("nobody told who the peers are")
    told = json.loads(line)
    return Peers(name, told["addresses"], bytes.fromhex(told["key"]), listener)


def _engine(data: _Data, peers: Peers | None, arguments: argparse.Namespace) -> Engine:
    return Engine(
        data.root,
        data.files,
        sizes=data.sizes,
        identity=data.identity,
        memory_bytes=arguments.memory_bytes,
        in_flight=tuple(arguments.in_flight),
        look_ahead=arguments.look_ahead,
        cache=arguments.cache,
        cache_bytes=arguments.cache_bytes,
        cache_keep_free=arguments.cache_keep_free,
        keep=arguments.keep,
        segments=not arguments.no_segments,
        tee=not arguments.no_tee,
        peers=peers,
        time_limit_s=arguments.time_limit_s,
    )


def _mount(engine: Engine, files: list[str], arguments: argparse.Namespace) -> Mount | None:
    if arguments.mount is None:
        return None
    if arguments.order is None:
        return engine.mount(arguments.mount, range(len(files)))
    numbers = {path: number for number, path in enumerate(files)}
    order = _lines(arguments.order)
    if unknown := [path for path in order if path not in numbers]:
        raise ValueError(f"{arguments.order}: {unknown[0]}: not in the data set")
    return engine.mount(arguments.mount, [numbers[path] for path in order])


def _unmount(mount: Mount | None) -> int:
    """0, or 1 where somebody stands in the directory: it is of no use to them from now on."""
    try:
        if mount:
            mount.close()
    except OSError as error:
        print(f"burstio.agent: unmount: {error}", file=sys.stderr)
        return 1
    return 0


def _lines(path: Path) -> list[str]:
    return os.fsdecode(path.read_bytes()).rstrip("\n").split("\n")


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
