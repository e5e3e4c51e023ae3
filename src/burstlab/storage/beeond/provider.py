"""The storage `beeond`: what a cell asks of it, spread over the cell's hosts."""

import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.doctor.environments import find_command
from burstlab.errors import StorageError
from burstlab.nodes import VirtualNodes
from burstlab.storage.beeond import command
from burstlab.storage.beeond.session import STATUS_DIRECTORY, Session, generation, own_name
from burstlab.storage.interface import Context, Storage
from burstlab.storage.stripes import stripes

_NODE = "burstlab.storage.beeond.node"
VERSION = Path("/sys/module/beegfs/version")  # of the client's kernel module


@dataclass(frozen=True)
class Options:
    """What a site tells of its BeeOND."""

    prefix: str = ""  # what makes a command root's, such as "sudo -n"
    conf: str = ""  # directory of the daemons' configuration (beeond -f), on every host
    data: str = ""  # where the servers' data go (default: the node-local scratch)
    mount: str = ""  # mount point (default: one of the cell's own)
    pdsh: bool = True  # beeond -P, all hosts at once, where there is a pdsh
    metadata_servers: int = 1
    storage_servers: int = 0  # 0: all hosts
    more: str = ""  # words for `beeond start`, such as "-C" (8.x) or "-p 2000"
    start_limit_s: float = 600.0
    stop_limit_s: float = 300.0


class BeeondStorage(Storage):
    """A BeeGFS of the cell's own, started and stopped by `beeond`."""

    name = "beeond"
    shared = True
    Options = Options

    def __init__(self, options: Any, context: Context) -> None:
        super().__init__(options, context)
        self._prefix = tuple(shlex.split(options.prefix))
        self._directory = Path(f"{context.directory}.beeond")  # of this host only
        local = context.hosts[0].local_dir  # the same path on each, where there are several
        names = [own_name()] if _is_this_host(context) else [host.name for host in context.hosts]
        data = Path(options.data, f"burstlab-{context.id}") if options.data else None
        self._session = Session(
            program=find_command("beeond") or "beeond",
            prefix=self._prefix,
            hosts=tuple(dict.fromkeys(names)),
            status=f"{STATUS_DIRECTORY}/burstlab-beeond-{context.id}",
            data=str(data or local / "beeond"),
            logs=str(local / "beeond-logs"),
            mount=options.mount or str(context.directory / "mnt"),
            nodes=str(self._directory / "nodes"),
            pdsh=options.pdsh and find_command("pdsh") is not None,
            begun_s=time.time(),
        )
        self._begun = False
        self._daemons: dict[str, Any] = {}
        self._facts: dict[str, Any] = {}

    def unavailable(self) -> str | None:
        """See Storage."""
        hosts, options = self.context.hosts, self.options
        if _is_this_host(self.context) and len(hosts) > 1:
            return f"BeeOND serves hosts, and {len(hosts)} virtual nodes share one"
        if find_command("beeond") is None:
            return "beeond is not here: BeeGFS's package beeond has it (docs/storages.md)"
        if self._prefix and find_command(self._prefix[0]) is None:
            return f"-o prefix={options.prefix}: there is no {self._prefix[0]}"
        if os.geteuid() and not self._prefix:
            return "beeond wants root: -o prefix='sudo -n' where the site allows it"
        if generation() == 7 and not options.conf:
            return "beeond 7 starts no daemon without -f: -o conf=DIRECTORY, such as /etc/beegfs"
        if why := self._session.unfit():
            return why
        found = self.context.nodes.call(
            f"{_NODE}:unfit", conf=options.conf, mount=self._session.mount
        )
        unfit = (f"{host}: {why}" for host, why in found.items() if why)
        return super().unavailable() or next(unfit, None)

    @property
    def mount(self) -> Path:
        """See Storage; the root of the file system, whose mode is 0777."""
        return Path(self._session.mount)

    def start(self) -> None:
        """See Storage."""
        options, lease = self.options, self.context.lease
        lease.directory(self._directory)
        self._call("prepare")
        words = self._session.start(
            options.conf,
            options.metadata_servers,
            options.storage_servers,
            shlex.split(options.more),
        )
        self._begun = True
        command.start(self._session, lease, words, options.start_limit_s, options.stop_limit_s)
        found = self._call("meet")
        names = [host.name for host in self.context.hosts]
        self._call("read_next", hosts=names)
        self._daemons = {host: told["daemons"] for host, told in found.items()}
        self._facts = found[names[0]]["facts"]
        if old := self._call("listing", head=names[0])[names[0]]:
            raise StorageError(f"{self.mount} is not empty after the start: {', '.join(old[:5])}")

    def problems(self) -> list[str]:
        """See Storage."""
        found = self._call("complaints", daemons=self._daemons)
        return [f"{host}: {what}" for host, told in found.items() for what in told]

    def drain(self) -> None:
        """See Storage; the disks of the hosts are its media."""
        self._call("write_back")

    def stop(self) -> None:
        """See Storage. Raises StorageError when anything is there all the same."""
        if not self._begun:
            return
        lease, limit_s = self.context.lease, self.options.stop_limit_s
        left = command.take_down(lease, self._session.as_json(), limit_s)
        self._begun = False
        lease.undone(command.TAKE_DOWN)
        found = self._call("clear")
        left += [f"{host}: {what}" for host, told in found.items() for what in told]
        if left:
            raise StorageError("; ".join(left))

    def describe(self) -> Mapping[str, object]:
        """See Storage."""
        services = [service for told in self._daemons.values() for service in told]
        version = VERSION.read_text().strip() if VERSION.exists() else f"{generation()}.x"
        told = {
            "version": version,
            "pdsh": self._session.pdsh,
            "storage_servers": services.count("beegfs-storage"),
            "metadata_servers": services.count("beegfs-meta"),
            "stripes": stripes(self.mount, self.mount, "beegfs"),
        }
        return {**self._facts, **told}

    def _call(self, action: str, **arguments: Any) -> dict[str, Any]:
        session = self._session.as_json()
        return self.context.nodes.call(f"{_NODE}:{action}", session=session, **arguments)


def _is_this_host(context: Context) -> bool:
    return isinstance(context.nodes, VirtualNodes)
