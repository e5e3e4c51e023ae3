"""What a lab consists of: its machines, their names, addresses and directories."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from burstlab.errors import ConfigurationError
from burstlab.pfs.emulation import Emulation

HEAD = "head"
NODE_LOCAL = "/local"
PFS = "/pfs"
PFS_WORK = "/pfs/work"  # what it shows: Lab.pfs_backing
SCHEDULERS = ("slurm", "gridengine")
DEFAULT_DIRECTORY = Path("/var/tmp/burstlab-lab")

# The site has a network of its own without a way out, so every lab can use the same addresses.
PREFIX = "10.77.0"


@dataclass(frozen=True)
class Lab:
    """One lab. ``directory`` holds everything of it, and is absolute."""

    directory: Path
    nodes: int = 4
    cores: int = 2
    memory_mb: int = 4000
    scheduler: str = "slurm"
    accounting: bool = False
    shape_mbit: int = 0  # of each machine's link, each way; 0: not shaped
    user: str = "lab"  # the ordinary user whose jobs run; "lab" is made if there is none
    pfs: Emulation = field(default_factory=Emulation)
    carry: tuple[str, ...] = ()  # directories of the host that machines must see, even in /tmp

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= 99:
            raise ConfigurationError(f"--nodes {self.nodes}: a lab has 1 to 99 nodes")
        for name, least in (("cores", 1), ("memory_mb", 1), ("shape_mbit", 0)):
            if getattr(self, name) < least:
                flag = f"--{name.replace('_', '-')}"
                raise ConfigurationError(f"{flag} {getattr(self, name)}: give {least} or more")
        if not re.fullmatch(r"[\w./-]+", str(self.directory)):
            raise ConfigurationError(
                f"--directory {self.directory}: Slurm's files allow letters, digits and _ . - only"
            )
        if self.scheduler not in SCHEDULERS:
            raise ConfigurationError(
                f"--scheduler {self.scheduler}: there are {', '.join(SCHEDULERS)}"
            )
        if self.accounting and self.scheduler != "slurm":
            raise ConfigurationError("--accounting: only Slurm has slurmdbd")

    @property
    def node_names(self) -> tuple[str, ...]:
        """node01, node02, ..."""
        return tuple(f"node{number:02}" for number in range(1, self.nodes + 1))

    @property
    def machines(self) -> tuple[str, ...]:
        """The head and all nodes."""
        return (HEAD, *self.node_names)

    def address(self, machine: str) -> str:
        """IPv4 address: the head has .1, node01 .11."""
        last = 1 if machine == HEAD else 10 + int(machine.removeprefix("node"))
        return f"{PREFIX}.{last}"

    def processors(self, machine: str, present: Sequence[int]) -> set[int]:
        """Processors of the host that are a machine's cores; few ones are shared."""
        if machine == HEAD:
            return set(present)
        first = self.node_names.index(machine) * self.cores
        return {present[number % len(present)] for number in range(first, first + self.cores)}

    def require(self, machine: str) -> str:
        """The name of one of the machines. Raises ConfigurationError for any other name."""
        if machine not in self.machines:
            raise ConfigurationError(
                f"no machine {machine!r} in this lab: it has {', '.join(self.machines)}"
            )
        return machine

    @property
    def etc(self) -> Path:
        """Files that take the place of the host's below /etc."""
        return self.directory / "etc"

    @property
    def log(self) -> Path:
        """/var/log of all machines."""
        return self.directory / "log"

    @property
    def home(self) -> Path:
        """Home of the user ``lab``; the same path on every machine."""
        return self.directory / "home"

    @property
    def pfs_backing(self) -> Path:
        """What the emulated parallel file system stores its files in."""
        return self.directory / "pfs"

    def own(self, machine: str) -> Path:
        """What one machine has for itself: local, tmp, spool."""
        return self.directory / "machines" / machine

    def save(self) -> None:
        """Write ``lab.json`` for the programs inside."""
        text = json.dumps({**asdict(self), "directory": str(self.directory)}, indent=1)
        (self.directory / "lab.json").write_text(text + "\n")

    @classmethod
    def load(cls, directory: Path) -> "Lab":
        """The lab in ``directory``. Raises ConfigurationError when there is none."""
        try:
            values = json.loads((directory / "lab.json").read_text())
        except FileNotFoundError:
            raise ConfigurationError(f"no lab in {directory}: `lab up` makes one") from None
        values["pfs"] = Emulation(*values["pfs"])
        return cls(**{**values, "directory": directory, "carry": tuple(values["carry"])})
