"""What a cell of TeraSort is told: its size and memory (TERASORT_*), its place (BURSTLAB_*)."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from failure import Failed

ROW_BYTES = 100  # of TeraGen: a key of 10 bytes, a value of 90
SPILLS = ("local", "mount")


@dataclass(frozen=True)
class Parameters:
    """Those of the experiment; memories and sort_factor are Hadoop's own defaults."""

    size_mb: int = 10  # decimal, as the paper's 20 GB
    spill: str = "local"  # where map outputs and merges go: node-local, or on the storage
    node_memory_mb: int = 8192  # of each NodeManager, for its containers
    container_memory_mb: int = 1024  # of every map, reduce and application master
    sort_factor: int = 10  # files that are merged at once

    @classmethod
    def of(cls, environment: Mapping[str, str], nodes: int) -> "Parameters":
        """Raises Failed for a value that can't be, alone or with the others."""
        given: dict[str, int | str] = {}
        for field in fields(cls):
            name = f"TERASORT_{field.name.upper()}"
            if name in environment:
                text = field.type is str or field.type == "str"
                given[field.name] = environment[name] if text else _whole(name, environment[name])
        parameters = cls(**given)  # type: ignore[arg-type]
        if parameters.spill not in SPILLS:
            raise Failed(f"TERASORT_SPILL={parameters.spill}: give {' or '.join(SPILLS)}")
        parameters._check_memory(nodes)
        return parameters

    @property
    def rows(self) -> int:
        """Rows that TeraGen writes."""
        return self.size_mb * 1_000_000 // ROW_BYTES

    def _check_memory(self, nodes: int) -> None:
        """The application master holds one container all the time: alone it would wait for ever."""
        containers = nodes * (self.node_memory_mb // self.container_memory_mb)
        if containers < 2:
            raise Failed(
                f"TERASORT_NODE_MEMORY_MB={self.node_memory_mb} on {nodes} node(s) holds "
                f"{containers} container(s) of TERASORT_CONTAINER_MEMORY_MB="
                f"{self.container_memory_mb}: an application master and a task want two"
            )


@dataclass(frozen=True)
class Place:
    """Where a cell runs, as burstlab tells it."""

    id: str
    mount: Path  # on the storage, the same path on every host
    local: Path  # node-local, the same path on every host
    directory: Path  # for reports and logs
    hosts: tuple[str, ...]
    launch: str
    launch_options: tuple[str, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Place":
        """Raises Failed when something is not told."""
        try:
            return cls(
                id=environment["BURSTLAB_CELL"],
                mount=Path(environment["BURSTLAB_MOUNT"]),
                local=Path(environment["BURSTLAB_LOCAL"]),
                directory=Path(environment["BURSTLAB_CELL_DIR"]).absolute(),
                hosts=_hosts(Path(environment["BURSTLAB_HOSTFILE"])),
                launch=environment["BURSTLAB_LAUNCH"],
                launch_options=tuple(shlex.split(environment.get("BURSTLAB_LAUNCH_OPTIONS", ""))),
            )
        except KeyError as error:
            raise Failed(f"{error.args[0]} is not set: burstlab run sets it") from error

    @property
    def alone(self) -> bool:
        """Whether all nodes are this host."""
        return self.launch == "local"

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each node; those of one host are numbered."""
        if not self.alone:
            return self.hosts
        return tuple(f"node{number:02}" for number in range(1, len(self.hosts) + 1))

    @property
    def here(self) -> str:
        """The name of this host to the others."""
        return "localhost" if self.alone else self.hosts[0]


def _hosts(file: Path) -> tuple[str, ...]:
    """One on each line, perhaps with its number of cores."""
    return tuple(line.split()[0] for line in file.read_text().splitlines() if line.strip())


def _whole(name: str, value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise Failed(f"{name}={value}: give a whole number from 1")
    return int(value)
