"""Run one cell: provision the storage, stage the data, run the workload, take all down, record.

Exit status: the workload's own; burstlab's own failures are 119 to 125 (docs/reference.md).
"""

import argparse
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from burstlab import relay
from burstlab.allocation import ORIGIN, allocate
from burstlab.cache import STATES
from burstlab.cell import Cell
from burstlab.errors import ConfigurationError
from burstlab.hosting import way_to
from burstlab.launch import LAUNCHERS
from burstlab.pfs.emulation import Emulation
from burstlab.record import LABELS, CellKey
from burstlab.request import (
    PATTERN_WANTED,
    STAGING_METHODS,
    STAGINGS,
    TRACERS,
    Request,
    is_below,
)
from burstlab.storage import STORAGES, storage_class

NEEDS = ("shared", "mmap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every flag; a site file only gives some of them (``--site``)."""
    add = parser.add_argument
    add("--site", metavar="NAME", help="flags of config/sites/NAME.yaml go before the others")
    add("--storage", required=True, choices=STORAGES, help="where the workload's data lives")
    add("-o", "--option", action="append", default=[], metavar="KEY=VALUE", help="storage option")
    add("--nodes", type=_at_least(int, 1), help="number of hosts (default: all there are)")
    add("--hosts", default="", help="hosts, such as node[01-04] (default: the scheduler's)")
    add("--virtual", action="store_true", help="virtual nodes of this machine")
    add(
        "--cores-per-node",
        type=_at_least(int, 1),
        default=0,
        help="default: the cores of this host",
    )
    add(
        "--launch",
        choices=("auto", "local", *LAUNCHERS),
        default="auto",
        help="how other hosts are reached (auto: srun in a Slurm job, else ssh)",
    )
    add("--launch-option", action="append", default=[], metavar="WORD", help="for the launcher")
    add("--local-dir", default=os.environ.get("TMPDIR", "/tmp"), help="base of node-local scratch")
    add("--pfs", metavar="DIR", help="the site's parallel file system, or `emulated`")
    add("--pfs-option", action="append", default=[], metavar="KEY=VALUE", help="emulator's costs")
    add("--dataset", metavar="MANIFEST", help="manifest of the data set (burstlab dataset make)")
    add("--staging", choices=STAGINGS, default="none")
    add("--staging-method", choices=STAGING_METHODS, default="copy", help="burstlab stage -h")
    add("--order", metavar="FILE", help="lazy staging: paths, one a line, first come first read")
    add("--peers", action="store_true", help="lazy staging: hosts read for one another")
    add("--cache", choices=STATES, default="as-is", help="page cache before the workload")
    add("--drop-caches", default="", metavar="COMMAND", help="the site's own, on every host")
    add("--needs", type=_words(NEEDS), default=(), help=f"of the storage: {','.join(NEEDS)}")
    add("--stage-out", action="append", default=[], metavar="GLOB", help="results to keep")
    add("--check", default="", metavar="COMMAND", help="judges the result, in the same environment")
    add("--time-limit", type=_at_least(float, 0), default=0.0, metavar="SECONDS", help="0: none")
    add("--trace-io", nargs="?", choices=TRACERS, const=TRACERS[0], default="",
        help="count reads and writes of each file; slower (default: strace)")  # fmt: skip
    add("--cell-dir", help="record, logs and results (default: results/run/ID)")
    add("--label", action="append", default=[], metavar="KEY=VALUE",
        help=f"{', '.join(LABELS)}; anything else is a parameter of the workload")  # fmt: skip
    add("command", nargs="+", metavar="COMMAND", help="after --")


def expand(words: list[str]) -> list[str]:
    """Replace ``--site NAME`` by the flags of that site: a site is a set of default flags."""
    own = words[: words.index("--")] if "--" in words else words
    for at, word in enumerate(own):
        if word == "--site" and own[at + 1 :]:
            name, rest = own[at + 1], words[at + 2 :]
        elif word.startswith("--site="):
            name, rest = word.removeprefix("--site="), words[at + 1 :]
        else:
            continue
        from burstlab.config.site import run_arguments

        return [*run_arguments(name, words), *words[:at], *rest]
    return words


def main(arguments: argparse.Namespace) -> int:
    """Run the cell and write its record, from the first of its hosts."""
    asked = request(arguments)
    hosts = asked.allocation.hosts
    if not asked.allocation.virtual and not relay.is_here(hosts[0]):
        if asked.launch == "local":
            raise ConfigurationError(
                f"--launch local runs cells on this host, {os.uname().nodename}, and this one is "
                f"for {hosts[0]}: give another --launch, or run burstlab there"
            )
        os.environ[ORIGIN] = asked.allocation.origin
        return relay.run_there(hosts[0], hosts, asked.launch, asked.launch_options)
    return Cell(asked).run().exit_status


def request(arguments: argparse.Namespace) -> Request:
    """The checked request. Raises ConfigurationError naming flag, value and what is allowed."""
    labels = _pairs("--label", arguments.label)
    provider = storage_class(arguments.storage)
    allocation = allocate(
        arguments.nodes, arguments.hosts, arguments.virtual, arguments.cores_per_node
    )
    identifier = f"{time.strftime('%m%d-%H%M%S')}-{os.urandom(3).hex()}"
    cell_dir = _absolute(arguments.cell_dir or f"results/run/{identifier}")
    key = CellKey.labelled(
        identifier,
        labels,
        storage=arguments.storage,
        staging=arguments.staging,
        nodes=len(allocation.hosts),
        repeat=_value("--label", "repeat", labels.get("repeat", "1"), int),
    )
    if arguments.staging != "none" and arguments.dataset is None:
        raise ConfigurationError(
            f"--staging {arguments.staging}: a --dataset is wanted that can be staged"
        )
    if len(allocation.hosts) > 1 and arguments.launch == "local" and not allocation.virtual:
        raise ConfigurationError(
            f"--launch local reaches this host only, and the cell has {len(allocation.hosts)}: "
            "--launch ssh, or --virtual for virtual nodes of this machine"
        )
    if arguments.peers and (arguments.staging != "lazy" or allocation.virtual):
        raise ConfigurationError(
            "--peers: it is for the hosts of --staging lazy, each of which has an agent; "
            "virtual nodes share one"
        )
    return Request(
        key=key,
        allocation=allocation,
        command=tuple(arguments.command),
        storage=provider,
        storage_options=options(provider.Options, "-o", arguments.option),
        pfs=_pfs(arguments),
        local_dir=_absolute(arguments.local_dir),
        cell_dir=cell_dir,
        launch=arguments.launch if arguments.launch != "auto" else way_to(allocation),
        launch_options=tuple(arguments.launch_option),
        needs=frozenset(arguments.needs),
        manifest=_manifest(arguments.dataset),
        staging=arguments.staging,
        staging_method=arguments.staging_method,
        order=_absolute(arguments.order) if arguments.order else None,
        peers=arguments.peers,
        cache=arguments.cache,
        drop_caches=shlex.join(_split("--drop-caches", arguments.drop_caches)),
        stage_out=_globs(arguments.stage_out),
        check=_split("--check", arguments.check),
        time_limit_s=arguments.time_limit,
        trace=arguments.trace_io,
        repeat_command=("burstlab", *sys.argv[1:]),
    )


def options(kind: type[Any], flag: str, words: Sequence[str]) -> Any:
    """An instance of an options class from KEY=VALUE words. Raises ConfigurationError."""
    fields = kind.__annotations__
    values = {}
    for name, text in _pairs(flag, words).items():
        if name not in fields:
            allowed = ", ".join(fields) or "none"
            raise ConfigurationError(f"{flag} {name}={text}: no such option; there are: {allowed}")
        values[name] = _value(flag, name, text, fields[name])
    return kind(**values)


def _value(flag: str, name: str, text: str, kind: Any) -> Any:
    if kind is bool:
        if text not in ("true", "false"):
            raise ConfigurationError(f"{flag} {name}={text}: true or false is wanted")
        return text == "true"
    if allowed := get_args(kind):  # of a Literal
        if text not in allowed:
            raise ConfigurationError(f"{flag} {name}={text}: {' or '.join(allowed)} is wanted")
        return text
    try:
        return kind(text)
    except ValueError:
        raise ConfigurationError(f"{flag} {name}={text}: {kind.__name__} is wanted") from None


def _pairs(flag: str, words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"{flag} {word}: KEY=VALUE is wanted")
        pairs[name] = value
    return pairs


def _split(flag: str, command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise ConfigurationError(f"{flag} {command}: {error}") from None


def _globs(patterns: Sequence[str]) -> tuple[str, ...]:
    for pattern in patterns:
        if not is_below(pattern):
            raise ConfigurationError(f"--stage-out {pattern}: {PATTERN_WANTED}")
    return tuple(patterns)


def _at_least(kind: type[Any], least: int) -> Any:
    def number(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < float("inf"):
            whole = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r}: {whole} from {least} is wanted")
        return value

    return number


def _words(allowed: Sequence[str]) -> Any:
    def words(text: str) -> tuple[str, ...]:
        found = tuple(word for word in text.split(",") if word)
        for word in found:
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(allowed)}")
        return found

    return words


def _pfs(arguments: argparse.Namespace) -> Path | Emulation | None:
    if arguments.pfs == "emulated":
        emulation: Emulation = options(Emulation, "--pfs-option", arguments.pfs_option)
        return emulation
    if arguments.pfs_option:
        raise ConfigurationError("--pfs-option is for --pfs emulated")
    return _absolute(arguments.pfs) if arguments.pfs else None


def _manifest(path: str | None) -> Any:
    if path is None:
        return None
    from burstlab.dataset.manifest import read_manifest, spot_check

    manifest = read_manifest(_absolute(path))
    if wrong := spot_check(manifest):
        raise ConfigurationError(f"{path}: {wrong[0]}")
    return manifest


def _absolute(path: str) -> Path:
    """Absolute, without following links: mount tables and exports are compared as text.

    A site may name a directory by a variable that only the job has ($PBS_LOCALDIR).
    """
    text = os.path.expandvars(path)
    if unset := re.search(r"\$\{?(\w+)", text):
        raise ConfigurationError(f"{path}: {unset[1]} is not set here")
    return Path(os.path.abspath(text))
