"""One BeeOND session: its hosts, its own paths, and the command lines that follow from them.

Every path carries the cell's id, so whatever names one of them belongs to this session and to
nothing else. Arguments of node actions and of the lease are JSON: ``as_json`` and ``of_json``.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from burstlab.doctor.environments import find_command

MOUNT_SOURCE = "beegfs_ondemand"  # what /proc/mounts says of every mount that beeond makes
STATUS_DIRECTORY = "/var/tmp"  # outlives the cell's directory: a late line of a start is found

# The script expands paths and hosts unquoted, and its status file separates them by commas.
_SAFE = re.compile(r"[A-Za-z0-9_.:@%+=/-]+")
_LOST = re.compile(
    r"(?:Host is unreachable via ssh|Error contacting host"
    r"|Host doesn't use /bin/bash as default shell|Could not find BeeOND helper program on host)"
    r": (\S+)"
)
# pdsh's own word of a host where a command failed, and beeond's of it
_PDSH_FAILED = re.compile(r"pdsh@\S+: (\S+): .*exited with exit code")
_LOOK_THERE = "Please see pdsh output for more information."


@dataclass(frozen=True)
class Session:
    """A BeeOND of one cell; paths are the same on every host."""

    program: str  # beeond
    prefix: tuple[str, ...]  # what makes a command root's, such as ("sudo", "-n")
    hosts: tuple[str, ...]  # the first one's daemons are management and metadata
    status: str  # status file, one on each host
    data: str  # directory of the servers' data
    logs: str  # directory of the daemons' logs
    mount: str
    nodes: str  # node file, on the host that calls beeond; its directory is the session's own
    pdsh: bool = False
    begun_s: float = 0.0  # Unix time

    def as_json(self) -> dict[str, Any]:
        """For ``of_json`` on another host, or in another process."""
        return asdict(self)

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> "Session":
        """What ``as_json`` made."""
        lists = {"prefix": tuple(given["prefix"]), "hosts": tuple(given["hosts"])}
        return cls(**{**given, **lists})

    @property
    def paths(self) -> tuple[str, ...]:
        """Of these, every process of the session has at least one in its arguments."""
        return (self.status, self.data, self.logs)

    def start(
        self, conf: str, metadata_servers: int, storage_servers: int, more: Sequence[str] = ()
    ) -> list[str]:
        """``beeond start``; ``-f`` comes before ``more``, whose -C, -E and -H (8.x) look at it."""
        words = ["start", "-n", self.nodes, "-d", self.data, "-c", self.mount]
        words += ["-i", self.status, "-L", self.logs, "-m", str(metadata_servers)]
        words += ["-s", str(storage_servers)] if storage_servers else []
        words += ["-f", conf] if conf else []
        words += ["-P"] if self.pdsh else []
        return [*self.prefix, self.program, *words, *more]

    def stop(self) -> list[str]:
        """``beeond stop`` for the hosts in the node file, with data and logs."""
        words = ["stop", "-n", self.nodes, "-i", self.status, "-L", "-d", "-c"]
        return [*self.prefix, self.program, *words, *(["-P"] if self.pdsh else [])]

    def unfit(self) -> str:
        """Why this session can't be told to beeond, or nothing."""
        for word in (*self.hosts, *self.paths, self.mount, self.nodes):
            if not _SAFE.fullmatch(word):
                return f"beeond can't take {word!r}: its script wants plain characters only"
        return ""


def generation() -> int:
    """7 or 8: the major version of BeeGFS here, told by its command line tool."""
    return 7 if find_command("beegfs-ctl") else 8


def errors(said: str) -> list[str]:
    """What beeond and the daemons complain of.

    pdsh puts the host before each line, and beeond itself tells no more than to look there: so all
    that the failed hosts said is told.
    """
    lines = [line.strip() for line in said.splitlines()]
    failed = {found[1] for line in lines if (found := _PDSH_FAILED.match(line))}
    told = [
        line for line in lines
        if line.partition(": ")[0] in failed or re.search(r"\berror: ", line, re.IGNORECASE)
    ]  # fmt: skip
    if failed:
        told = [line for line in told if not line.endswith(_LOOK_THERE)]
    return list(dict.fromkeys(re.sub(r"^(?:\S+: )?ERROR: ", "", line) for line in told))


def lost(said: str, hosts: Iterable[str]) -> list[str]:
    """Hosts for whose sake a command did nothing anywhere."""
    named = set(_LOST.findall(said))
    return [host for host in hosts if host in named]


def own_name() -> str:
    """This host, as beeond's ssh reaches it."""
    return os.uname().nodename
