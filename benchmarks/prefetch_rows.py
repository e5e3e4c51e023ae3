"""The table of benchmarks/prefetch.py: ratios of the two of one turn, their medians and ranges."""

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROOM = 0.6  # of the data set in each of two nodes' caches: half, and what chance wants
LINE = "{:66} {:>8}  {:18} {}"
Run = Mapping[str, Any]


def table(
    results: Mapping[str, Sequence[Run]], size_bytes: int, files: int, parts: Sequence[str]
) -> None:
    """Print the rows of these parts, and the seconds behind them."""
    print(LINE.format("", "median", "range", "aim"))
    rows = Rows(results, size_bytes, files)
    for part in parts:
        getattr(rows, part)()
    print("\nseconds of a cold epoch (of a loop that computes: of all of it)")
    for name, runs in results.items():
        timed = [run for run in runs if "elapsed_s" in run]
        seconds = [run["epochs_s"][0] if run["epochs_s"] else run["elapsed_s"] for run in timed]
        if seconds:
            show(name, seconds)


def show(name: str, values: Sequence[float], aim: str = "") -> None:
    """A row."""
    spread = f"({min(values):.3g} to {max(values):.3g})"
    print(LINE.format(name, f"{statistics.median(values):.3g}", spread, aim), flush=True)


def first(run: Run) -> float:
    """Seconds to the first minibatch."""
    return float(run["first_s"])


def cold(run: Run) -> float:
    """Seconds of the first epoch."""
    return float(run["epochs_s"][0])


def warm(run: Run) -> float:
    """Seconds of the second epoch."""
    return float(run["epochs_s"][1])


@dataclass(frozen=True)
class Rows:
    """A method for each part of the benchmark."""

    results: Mapping[str, Sequence[Run]]
    size_bytes: int
    files: int

    def ratios(self, one: str, other: str, of: Callable[[Run], float]) -> list[float]:
        """Of the two of each turn."""
        pairs = zip(self.results[one], self.results[other], strict=True)
        return [of(above) / of(below) for above, below in pairs]

    def pipelines(self) -> None:
        """Cold and warm epochs."""
        show("direct / paper3, cold epoch", self.ratios("direct", "paper3", cold), "1.20: paper")
        pairs = zip(self.results["direct"], self.results["ssd"], strict=True)
        hidden = [cold(direct) / (cold(direct) - cold(ssd)) for direct, ssd in pairs]
        show(
            "direct / (direct - SSD), cold epoch: paper3 if it hid all else", hidden, "1.14: paper"
        )
        show(
            "paper3 / direct, first minibatch",
            self.ratios("paper3", "direct", first),
            "2.12: paper",
        )
        show("lazy / direct, first minibatch", self.ratios("lazy", "direct", first), "<= 1.0")
        show("direct / lazy, cold epoch", self.ratios("direct", "lazy", cold), ">= 7")
        for ssd, how in (("ssd", ""), ("ssd, threads", " in threads, as lazy's workers")):
            name = f"lazy / all on SSD{how}"
            show(f"{name}, cold epoch", self.ratios("lazy", ssd, cold), "<= 1.15")
            show(f"{name}, warm epoch", self.ratios("lazy", ssd, warm), "<= 1.02")

    def compute(self) -> None:
        """The loop that computes."""
        names = "lazy, computing", "direct, computing"
        whole = self.ratios(*names, lambda run: float(run["elapsed_s"]))
        show("lazy / direct, loop bound by computation", whole, "<= 1.0")
        lazy, direct = ([_share(run) for run in self.results[name]] for name in names)
        more = [one - other for one, other in zip(lazy, direct, strict=True)]
        show("lazy - direct, CPU share of the pipeline in it [points]", more, "<= 2")

    def loaders(self) -> None:
        """What others have."""
        torch = {name: runs for name, runs in self.results.items() if name.startswith("torch ")}
        best = min(torch, key=lambda name: statistics.median(map(cold, torch[name])), default="")
        for name, key, aim in (
            (f"PyTorch DataLoader ({best.removeprefix('torch ')} workers: its best)", best, 2),
            ("MosaicML Streaming (from shards made before)", "mosaic", 1.2),
            ("tf.data", "tensorflow", 1.2),
        ):
            if key in self.results:
                show(f"{name} / lazy, cold epoch", self.ratios(key, "lazy", cold), f">= {aim}")
            else:
                print(LINE.format(f"{name.partition(' (')[0]} / lazy", "-", "not installed", ""))

    def bytes(self) -> None:
        """What is read from the parallel file system, by the engine's own count: what it reads
        again comes from the client's page cache here, and the emulator does not see it."""
        five, half = (
            [run["statistics"]["source_bytes"] / self.size_bytes for run in self.results[name]]
            for name in ("five epochs", "half a cache")
        )
        show("PFS bytes of five epochs / data set", five, "<= 1.05")
        half = [(read - 1) / 4 for read in half]
        show("PFS bytes / data set, each warm epoch, cache of half of it", half, "<= 0.50")
        for ranks in (2, 4):
            name = f"{ranks} ranks, one agent, five epochs"
            show(f"{name}: PFS opens / files", self.opens(f"{ranks} ranks"), "1.0")
        for name, how, aim in (("two nodes", "", ""), ("two nodes, peers", " as peers", "1.0")):
            what = f"two nodes{how}, caches of {ROOM} of it, five epochs: PFS opens / files"
            show(what, self.opens(name), aim)

    def opens(self, name: str) -> list[float]:
        """Files that were opened on the parallel file system, for each file that there is."""
        return [run["statistics"]["source_opens"] / self.files for run in self.results[name]]

    def ablation(self) -> None:
        """How much faster than direct a cold epoch of a part of the files is, and how much slower
        a warm one is from many small files, and where nothing is kept. That one reads the source
        again, of which the bytes are in the client's page cache here: each file costs an open."""
        for name in self.results:
            if name.startswith("part: "):
                of = self.ratios("part: direct", name, cold)
                show(f"direct / {name.removeprefix('part: ')}, cold epoch of a part", of)
        for name in ("lazy, a file for each sample", "lazy, no cache"):
            show(f"{name} / lazy, warm epoch", self.ratios(f"part: {name}", "part: lazy", warm))


def _share(run: Run) -> float:
    return float(100 * run["cpu_s"] / run["elapsed_s"] / (os.cpu_count() or 1))
