"""Measure the storage of the cell this runs in: burstlab run ... -- burstlab probe.

Sees on every host that what one writes another can read, and on whose disk it lies; times a first
look, writing and reading. The numbers go into the cell's record.
"""

import argparse
import os
from pathlib import Path

from burstlab.errors import ConfigurationError
from burstlab.mounts import mount_of
from burstlab.probe.hosts import Hosts
from burstlab.probe.report import Report
from burstlab.storage import storage_class
from burstlab.storage.stripes import stripes

MIB = 1 << 20
UNIT = MIB  # the n-th host places n of these: where hosts share their disks, none keeps its own


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of ``burstlab probe``."""
    size = os.environ.get("PROBE_MIB", "32")
    parser.add_argument("--mib", type=int, default=size, help="size on each host (%(default)s)")


def main(arguments: argparse.Namespace) -> int:
    """Probe, print what was found, leave it for the record."""
    if "BURSTLAB_CELL_DIR" not in os.environ:
        raise ConfigurationError("not in a cell: burstlab run --storage NAME ... -- burstlab probe")
    if arguments.mib < 1:
        raise ConfigurationError(f"--mib {arguments.mib}: a whole number from 1 is wanted")
    hosts, mount = Hosts.of(os.environ), Path(os.environ["BURSTLAB_MOUNT"])
    report = probe(hosts, mount, arguments.mib * MIB)
    report.write(Path(os.environ["BURSTLAB_CELL_DIR"]))
    for metric in report.metrics:
        print(f"{metric['name']:16} {metric['value']:10.3f} {metric['unit']}")
    for line in [*(f"{name}: {fact}" for name, fact in report.facts.items()), *report.issues]:
        print(line)
    return 0


def probe(hosts: Hosts, mount: Path, large_bytes: int) -> Report:
    """All steps on all hosts."""
    storage = storage_class(os.environ["BURSTLAB_STORAGE"])
    shared = os.environ["BURSTLAB_SHARED"] == "true" or hosts.here
    asked = {
        "mount": str(mount),
        "local": os.environ["BURSTLAB_LOCAL"],
        "shared": shared,
        "unit_bytes": UNIT,
        "large_bytes": large_bytes,
    }
    report = Report(facts={"launch": hosts.launch, "mib_per_node": f"{large_bytes // MIB}"})
    answers = {}
    for step in ("write", "look", "fill", "read"):
        answers[step] = hosts.do(step, asked)
        report.did(step, answers[step])
    report.ready(answers["write"], answers["look"])
    if len(hosts.names) == 1 or not hosts.here:  # virtual nodes have one disk
        placed = {host: UNIT * number for number, host in enumerate(hosts.names, 1)}
        report.locality(placed, answers["look"], storage.local)
    report.bandwidth("write", answers["fill"], large_bytes)
    report.bandwidth("read", answers["read"], large_bytes)
    report.cache(answers["read"], large_bytes)
    on = mount_of(mount)
    if told := stripes(mount, Path(on.path), on.type):
        report.facts["stripes"] = ", ".join(f"{name} {value}" for name, value in told.items())
    return report
