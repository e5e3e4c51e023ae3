"""What the answers of a cell's hosts come to: metrics, facts, issues, operations."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burstlab.probe.hosts import Answers

MB = 1e6
ON_ITS_OWN = 0.99  # the share of a host's bytes that count as all of them
FROM_CACHE = 0.05


@dataclass
class Report:
    """Grows with each step; ``write`` leaves it for the record (docs/reference.md)."""

    metrics: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    issues: list[str] = field(default_factory=list)
    operations: list[tuple[str, float, float, str, int]] = field(default_factory=list)

    def did(self, step: str, answers: Answers) -> None:
        """A row for each host."""
        self.operations += [
            (step, told["start_s"], told["seconds"], host, 0) for host, told in answers.items()
        ]

    def metric(self, name: str, value: float, unit: str, better: str) -> None:
        """One number."""
        self.metrics.append({"name": name, "value": value, "unit": unit, "better": better})

    def ready(self, written: Answers, seen: Answers) -> None:
        """From the first byte on a host until another host has read it, on the slowest."""
        longest = {name: max(one["seconds"] for one in of.values())
                   for name, of in (("write", written), ("look", seen))}  # fmt: skip
        self.metric("ready_time", sum(longest.values()), "s", "lower")

    def locality(self, placed: Mapping[str, int], seen: Answers, expected: bool) -> None:
        """The share of what a host wrote that lies on its own disk: the smallest of all hosts."""
        hidden = [host for host, told in seen.items() if told["kept_bytes"] is None]
        if hidden:
            self.facts["locality"] = f"not known: the disk of {hidden[0]} may not be looked at"
            return
        shares = {host: min(1.0, seen[host]["kept_bytes"] / size) for host, size in placed.items()}
        self.metric("local_share", 100 * min(shares.values()), "%", "higher")
        away = {host: share for host, share in shares.items() if share < ON_ITS_OWN}
        if expected and away:
            told = ", ".join(f"{host} keeps {share:.0%}" for host, share in away.items())
            self.issues.append(f"not every host writes to its own disk: {told} of what it wrote")

    def bandwidth(self, name: str, answers: Answers, size: int) -> None:
        """Bytes of all hosts over the time of the slowest [MB/s]."""
        slowest = max(told["seconds"] for told in answers.values())
        self.metric(f"{name}_bandwidth", len(answers) * size / MB / slowest, "MB/s", "higher")

    def cache(self, answers: Answers, size: int) -> None:
        """Whether the file that was read was in memory before."""
        resident = {host: told["resident_bytes"] for host, told in answers.items()}
        if None in resident.values():
            self.facts["read"] = "cache not looked at: fincore (util-linux) is missing"
            return
        warm = {host: held / size for host, held in resident.items() if held > FROM_CACHE * size}
        self.facts["read"] = "from memory" if warm else "cold"
        self.issues += [
            f"the bandwidth of reading on {host} is that of its memory: {share:.0%} were resident"
            for host, share in warm.items()
        ]

    def write(self, directory: Path) -> None:
        """Into the cell's directory."""
        for name in ("metrics", "facts", "issues"):
            (directory / f"{name}.json").write_text(json.dumps(getattr(self, name)))
        with (directory / "operations.csv").open("w", newline="") as opened:
            rows = csv.writer(opened, lineterminator="\n")
            rows.writerow(("operation", "start_s", "elapsed_s", "host", "status"))
            rows.writerows(self.operations)
