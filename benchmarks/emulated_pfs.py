"""The emulated parallel file system: costs as set against costs as seen by 1, 2 and 8 clients.

    python benchmarks/emulated_pfs.py [--files 400] [--metadata-latency-ms 1] ...

Clients are processes in plain Python. Caches are cold: files are evicted (posix_fadvise) and names
unknown to the client are made under names that no client has looked up. Nothing is asserted.
"""

import argparse
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

from fresh_mount import fresh_mount

from burstlab.pfs.emulation import Emulation
from burstlab.process import cpu_seconds

MB = 1_000_000
FILE_BYTES = 76_000
STREAM_BYTES = 100 * MB
CLIENTS = (1, 2, 8)
LINE = "{:34} {:>7} {:>10} {:>9} {:>10} {:>10} {:>12}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=400)
    for name, default in Emulation._field_defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=default)
    arguments = parser.parse_args()
    emulation = Emulation(**{name: getattr(arguments, name) for name in Emulation._fields})
    print(f"set: {emulation}")
    print(
        f"conditions: {arguments.files} files of {FILE_BYTES} bytes; streams of"
        f" {STREAM_BYTES // MB} MB; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f},"
        f" Linux {platform.release()}, Python {platform.python_version()}"
    )
    print(LINE.format("", "clients", "ops/s", "MB/s", "p50 ms", "p95 ms", "server CPU"))
    with tempfile.TemporaryDirectory() as directory:
        mount, backing = Path(directory, "mount"), Path(directory, "backing")
        backing.mkdir()
        with fresh_mount(mount, {"work": backing}, emulation) as pid:
            for clients in CLIENTS:
                measure(mount / "work", pid, clients, arguments.files)


def measure(work: Path, pid: int, clients: int, count: int) -> None:
    """One row for each kind of work, with ``clients`` clients."""
    top = work / f"of-{clients}-clients"
    folders = [top / str(client) for client in range(clients)]
    for folder in folders:
        folder.mkdir(parents=True)
    share = count // clients
    files = [[folder / f"file{number}" for number in range(share)] for folder in folders]
    streams = [[folder / "stream"] for folder in folders]
    stream_bytes = STREAM_BYTES // clients
    absent = [[path.with_suffix(".no") for path in own] for own in files]
    rows: list[tuple[str, Callable[[Path, int], int], list[list[Path]], int]] = [
        ("look up a name that is not there", look_up, absent, 0),
        ("create, write and close a file", write, files, FILE_BYTES),
        ("open and read a file", read, files, FILE_BYTES),
        ("write a stream", write, streams, stream_bytes),
        ("read a stream", read, streams, stream_bytes),
    ]
    for name, operation, paths, size in rows:
        if operation is read:
            evict(top)
        began, cpu = time.monotonic(), cpu_seconds(pid)
        latencies = in_parallel(operation, paths, size)
        elapsed, cpu = time.monotonic() - began, cpu_seconds(pid) - cpu
        done, moved = len(latencies), len(latencies) * size / MB
        per = (
            f"{cpu / moved * 1e3:.2f} ms/MB" if done <= clients else f"{cpu / done * 1e6:.0f} us/op"
        )
        latencies.sort()
        p50, p95 = (latencies[int((done - 1) * part)] * 1e3 for part in (0.5, 0.95))
        rate, speed = f"{done / elapsed:.0f}", f"{moved / elapsed:.1f}"
        print(LINE.format(name, clients, rate, speed, f"{p50:.2f}", f"{p95:.2f}", per), flush=True)


def in_parallel(
    operation: Callable[[Path, int], int], paths: list[list[Path]], size: int
) -> list[float]:
    """Seconds of every operation; each client is a process and has its own list of paths."""
    with get_context("fork").Pool(len(paths)) as pool:
        pool.map(abs, range(len(paths)))  # the processes are there
        results = pool.starmap(client, [(operation, own, size) for own in paths], chunksize=1)
    return [seconds for own in results for seconds in own]


def client(operation: Callable[[Path, int], int], paths: list[Path], size: int) -> list[float]:
    """Do ``operation`` on every path in random order; seconds of each."""
    random.Random(7).shuffle(paths)
    seconds = []
    for path in paths:
        began = time.perf_counter()
        operation(path, size)
        seconds.append(time.perf_counter() - began)
    return seconds


def look_up(path: Path, _: int) -> int:
    """A negative lookup, which no client caches."""
    return int(path.exists())


def write(path: Path, size: int) -> int:
    """A new file, in writes of 1 MiB at most."""
    block = bytes(1 << 20)
    with path.open("wb", buffering=0) as file:
        for offset in range(0, size, len(block)):
            file.write(block[: size - offset])
    return size


def read(path: Path, size: int) -> int:
    """A whole file, in reads of 1 MiB."""
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
    return size


def evict(top: Path) -> None:
    """Nothing of the files stays in the page cache."""
    for path in top.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    main()
