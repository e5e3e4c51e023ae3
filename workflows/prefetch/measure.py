"""Load N minibatches of decoded images and note when each came: Serizawa and Tatebe, section 4.1.

A workload of ``burstlab run`` on one host. README.md tells the variables and what is in the times.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import burstio
import numpy as np
import PIL.JpegImagePlugin  # what decodes is loaded before the time begins, in every mode

from burstlab.pipelines import MODES, Images, Minibatches, Mode, Options, open_pipeline

SEED = 1
STORAGE_OF = {"direct": "pfs", "ssd": "nodelocal", "paper3": "pfs", "lazy": "pfs"}
HEADER = "operation,start_s,elapsed_s,host,status\n"


class Unusable(Exception):
    """Why it can't be measured, in one line."""


@dataclass(frozen=True)
class Cell:
    """What the cell asks for, from the environment."""

    data: Path
    manifest: Path
    local: Path
    directory: Path
    mode: Mode
    minibatches: int
    batch: int
    options: Options

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Cell":
        """Raises Unusable for a variable that is missing or makes no sense."""
        mode = environment.get("PREFETCH_MODE", "lazy")
        if mode not in MODES:
            raise Unusable(f"PREFETCH_MODE={mode}: there are {', '.join(MODES)}")
        if (storage := environment["BURSTLAB_STORAGE"]) != STORAGE_OF[mode]:
            wanted = STORAGE_OF[mode]
            raise Unusable(f"mode {mode} on storage {storage}: it is measured on {wanted}")
        if not environment["BURSTLAB_DATA"]:
            raise Unusable("no data set: give --dataset")
        number = {
            name: _number(environment, f"PREFETCH_{name.upper()}", default)
            for name, default in (
                ("minibatches", 1000),
                ("batch", 32),
                ("generation", 2),
                ("copiers", 2),
            )
        }
        data = Path(environment["BURSTLAB_DATA"])
        local = Path(environment["BURSTLAB_LOCAL"]) / "prefetch"
        options = Options(
            workers=number["generation"],
            copiers=number["copiers"],
            local=data if mode == "ssd" else local,
        )
        return cls(
            data=data,
            manifest=Path(environment["BURSTLAB_MANIFEST"]),
            local=local,
            directory=Path(environment["BURSTLAB_CELL_DIR"]),
            mode=mode,
            minibatches=number["minibatches"],
            batch=number["batch"],
            options=options,
        )

    def parameters(self) -> str:
        """All of them, wherever they came from."""
        own = {name: getattr(self, name) for name in ("mode", "minibatches", "batch")}
        own |= {"generation": self.options.workers, "copiers": self.options.copiers}
        return ",".join(f"{name}={value}" for name, value in own.items())


def measure(cell: Cell) -> None:
    """Load the minibatches and leave what is to be reported."""
    entries = json.loads(cell.manifest.read_bytes())["entries"]
    images = Images(cell.data, [entry[0] for entry in entries])
    if cell.options.local != cell.data and cell.options.local is not None:
        cell.options.local.mkdir()
    order = burstio.shuffled(len(images), SEED)
    host = os.uname().nodename
    rows, begun_s, begun = [HEADER], time.time(), time.perf_counter()
    with (
        open_pipeline(cell.mode, images, cell.options) as pipeline,
        Minibatches(pipeline, order, cell.batch, across_epochs=True) as batches,
    ):
        before = 0.0
        times = []
        for _ in range(cell.minibatches):
            examples = next(batches)
            now = time.perf_counter() - begun
            rows.append(f"minibatch,{begun_s + before:.6f},{now - before:.6f},{host},0\n")
            times.append(now)
            before = now
        counters = pipeline.statistics()
    facts = {"parameters": cell.parameters(), "last_minibatch_sha256": _digest(examples)}
    facts |= {name: str(counters[name]) for name in ("source_opens", "from_cache") if counters}
    _report(cell, rows, times, facts, len(images))


def _report(
    cell: Cell, rows: list[str], times: list[float], facts: dict[str, str], files: int
) -> None:
    (cell.directory / "operations.csv").write_text("".join(rows))
    metrics = [("first_minibatch_time", times[0]), ("minibatches_time", times[-1])]
    told = [
        {"name": name, "value": round(value, 6), "unit": "s", "better": "lower"}
        for name, value in metrics
    ]
    (cell.directory / "metrics.json").write_text(json.dumps(told))
    (cell.directory / "facts.json").write_text(json.dumps(facts))
    if (read := cell.minibatches * cell.batch) > files:
        issue = f"{read} samples of {files} files: later epochs find files in caches"
        (cell.directory / "issues.json").write_text(json.dumps([issue]))


def _digest(examples: list[tuple[np.ndarray, np.int32]]) -> str:
    """Of a minibatch: equal in all modes, or the pipelines do not give the same."""
    found = hashlib.sha256()
    for array, label in examples:
        found.update(array.tobytes() + label.tobytes())
    return found.hexdigest()


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise Unusable(f"{name}={text}: a whole number from 1 is wanted")
    return int(text)


def main() -> int:
    """Exit status; 1: why is told in failure.txt."""
    PIL.JpegImagePlugin.Image.init()
    try:
        measure(Cell.of(os.environ))
    except (Unusable, OSError) as error:
        Path(os.environ["BURSTLAB_CELL_DIR"], "failure.txt").write_text(f"{error}\n")
        print(f"prefetch: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
