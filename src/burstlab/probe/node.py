"""What one host does in one step of the probe: ``python -m burstlab.probe.node HOST ASKED``.

ASKED and the answer, one line on stdout, are JSON. It runs on every host of the cell at once.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from burstlab import cache
from burstlab.errors import StorageError
from burstlab.storage.probing import following

MIB = 1 << 20
BLOCK = 4 * MIB
SEEN_S = 30.0  # until one host's file must be visible on another
GREETING, PLACED, LARGE = "greeting", "placed", "large"

Step = Callable[[Path, Mapping[str, Any]], Mapping[str, Any]]


def write(mount: Path, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """A directory of this host's, its name in a file, and a file of ``placed_bytes``."""
    own = mount / asked["host"]
    own.mkdir()
    began = time.monotonic()
    (own / GREETING).write_text(asked["host"])
    greeted_s = time.monotonic() - began
    _fill(own / PLACED, asked["placed_bytes"])
    return {"seconds": greeted_s}


def look(mount: Path, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """How long until the next host's greeting is read, and how much is kept on this host's disk.

    ``kept_bytes`` is None where this user may not look. Raises StorageError.
    """
    began = time.monotonic()
    path, told = mount / asked["next"] / GREETING, ""
    while told != asked["next"]:
        try:
            told = path.read_text()
        except FileNotFoundError:
            if time.monotonic() > began + SEEN_S:
                raise StorageError(f"{path} is not seen after {SEEN_S:.0f} s") from None
            time.sleep(0.005)
        else:
            if told not in ("", asked["next"]):
                raise StorageError(f"{path} holds {told!r}")
    return {"seconds": time.monotonic() - began, "kept_bytes": kept_bytes(Path.cwd())}


def fill(mount: Path, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write ``large_bytes`` until they are on the media, then empty this host's cache of it."""
    own = mount / asked["host"]
    began = time.monotonic()
    _fill(own / LARGE, asked["large_bytes"])
    seconds = time.monotonic() - began
    cache.bring([own, Path.cwd()], "cold")
    return {"seconds": seconds}


def read(mount: Path, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read the next host's large file; ``resident_bytes`` of it were in this host's cache."""
    path = mount / asked["next"] / LARGE
    resident, size = cache.resident_bytes([path]), 0
    began = time.monotonic()
    with path.open("rb", buffering=0) as opened:
        while block := opened.read(BLOCK):
            size += len(block)
    seconds = time.monotonic() - began
    if size != asked["large_bytes"]:
        raise StorageError(f"{path}: {size} bytes of {asked['large_bytes']} can be read")
    return {"seconds": seconds, "resident_bytes": resident}


STEPS: dict[str, Step] = {step.__name__: step for step in (write, look, fill, read)}


def kept_bytes(directory: Path) -> int | None:
    """Bytes of the files below ``directory``, on its own file system; None if one may not look."""
    size, device = 0, directory.stat().st_dev
    hidden: list[OSError] = []
    for where, directories, names in os.walk(directory, onerror=hidden.append):
        directories[:] = [d for d in directories if _device(Path(where, d)) == device]
        size += sum(Path(where, name).lstat().st_size for name in names)
    return None if hidden else size


def main(host: str, asked: Mapping[str, Any]) -> int:
    """Run a step and answer. Exit status 0, or 1 when the answer is why it failed."""
    host = host or os.environ["SLURMD_NODENAME"]  # srun names the host, and no word of its own
    hosts = asked["hosts"]
    other = following(hosts, host) if asked["shared"] else host
    placed = asked["unit_bytes"] * (hosts.index(host) + 1)
    # In the node-local directory of the cell, so that whoever cleans that ends this too.
    os.chdir(asked["local"])
    start_s = time.time()
    try:
        told = STEPS[asked["step"]](
            Path(asked["mount"]),
            {**asked, "host": host, "next": other, "placed_bytes": placed},
        )
    except (OSError, StorageError) as error:
        print(json.dumps({"host": host, "error": str(error)}), flush=True)
        return 1
    print(json.dumps({"host": host, "start_s": start_s, **told}), flush=True)
    return 0


def _fill(path: Path, size: int) -> None:
    """Bytes that no file system can make smaller, on the media when it returns."""
    block = os.urandom(BLOCK)
    with path.open("wb") as opened:
        for at in range(0, size, BLOCK):
            opened.write(block[: size - at])
        opened.flush()
        os.fsync(opened.fileno())


def _device(path: Path) -> int:
    try:
        return path.lstat().st_dev
    except OSError:  # a mount whose server does not serve us
        return -1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
