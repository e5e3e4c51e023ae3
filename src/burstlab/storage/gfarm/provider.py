"""The storage `gfarm`: what a cell asks of it, spread over the cell's hosts."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from burstlab.errors import NodeError, StagingError
from burstlab.nodes import VirtualNodes
from burstlab.storage.gfarm.configuration import LOCAL, mount_options
from burstlab.storage.gfarm.gfarmbb import Gfarmbb
from burstlab.storage.gfarm.integrity import File, Replica, differences
from burstlab.storage.interface import Context, Storage

if TYPE_CHECKING:
    from burstlab.dataset.manifest import Manifest

_HERE = "burstlab.storage.gfarm"
MONTH_S = 30 * 24 * 3600  # lifetime of the key of a cell without a time limit
HOUR_S = 3600  # longer than what comes before and after the time that is limited
SETTLE_S = 5.0  # a file's metadata may come a little after its close
NAMED = 5  # files told one by one


class Options(NamedTuple):
    """How this Gfarm is started and filled (docs/storages.md has what was measured)."""

    launcher: Literal["burstlab", "gfarmbb"] = "burstlab"
    stage_in: Literal["mounts", "gfpcopy"] = "mounts"


class GfarmStorage(Storage):
    """A Gfarm file system of the cell's own, over the node-local disks of its hosts."""

    name = "gfarm"
    shared = True
    local = True
    Options = Options

    def __init__(self, options: Any, context: Context) -> None:
        super().__init__(options, context)
        self._gfarmbb = Gfarmbb(context, self.mount) if options.launcher == "gfarmbb" else None

    def unavailable(self) -> str | None:
        """See Storage."""
        hosts = self.context.hosts
        if isinstance(self.context.nodes, VirtualNodes) and len(hosts) > 1:
            return (
                "Gfarm needs one file system node per host: "
                f"{len(hosts)} virtual nodes share one host"
            )
        found = self.context.nodes.call(f"{_HERE}.node:unfit", alone=len(hosts) == 1)
        unfit = (self._told(host, why) for host, why in found.items() if why)
        why = super().unavailable() or next(unfit, None)
        return why or (self._gfarmbb.unavailable() if self._gfarmbb else None)

    @property
    def mount(self) -> Path:
        """See Storage; the path is the same on every host."""
        return self.context.directory / "mnt"

    def start(self) -> None:
        """See Storage."""
        limit_s = self.context.time_limit_s
        lifetime_s = int(limit_s) + HOUR_S if limit_s else MONTH_S
        if self._gfarmbb:
            self._served, self._hosts = self._gfarmbb.start(lifetime_s)
        else:
            self._start_daemons(lifetime_s)
        names = [host.name for host in self.context.hosts]
        self.context.nodes.call(f"{_HERE}.node:meet", mount=str(self.mount), hosts=names)

    def _start_daemons(self, lifetime_s: int) -> None:
        """gfmd first, then all hosts at once."""
        nodes, head = self.context.nodes, self.context.hosts[0].name
        server = LOCAL if len(self.context.hosts) == 1 else head
        served = nodes.call(
            f"{_HERE}.node:start_metadata_server",
            head=head,
            server=server,
            key_lifetime_s=lifetime_s,
        )[head]
        self._served = {"server": server, "port": served["port"]}
        self._hosts = nodes.call(
            f"{_HERE}.node:start_filesystem_node",
            **self._served,
            key=served["key"],
            mount=str(self.mount),
            options=mount_options(self.context.needs),
        )

    def environment(self) -> Mapping[str, str]:
        """See Storage; the path is the same on every host."""
        directory = self.context.hosts[0].local_dir / "gfarm"
        return {"GFARM_CONFIG_FILE": str(directory / "gfarm2.conf")}

    def stage_in(
        self, manifest: "Manifest", source: Path, target: Path
    ) -> Mapping[str, object] | None:
        """See Storage; on one host burstlab's own way is the same as through the mounts."""
        way, nodes = self.options.stage_in, self.context.nodes
        if way == "mounts" and len(nodes.hosts) == 1:
            return None
        from burstlab.storage.gfarm.staging import by_gfpcopy, through_mounts

        try:
            if way == "mounts":
                phases = through_mounts(nodes, manifest, source, target)
            else:
                place = str(target)  # gfarmbb mounts the directory that has the mount's name
                if not self._gfarmbb:
                    place = f"/{target.relative_to(self.mount)}"
                phases = by_gfpcopy(nodes, manifest, source, target, place, self._served)
        except NodeError as error:
            raise StagingError(str(error)) from error
        return {
            "method": way,
            "hosts": len(nodes.hosts),
            "files": manifest.file_count,
            "bytes": manifest.size_bytes,
            "phases": phases,
        }

    def problems(self) -> list[str]:
        """See Storage; the deaths of daemons are told by the lease's holders."""
        found = self.context.nodes.call(f"{_HERE}.integrity:complaints", mount=str(self.mount))
        return [self._told(host, what) for host, told in found.items() for what in told]

    def verify(self) -> list[str]:
        """See Storage: every file must be on some host's disk in the size it is seen in."""
        deadline = time.monotonic() + SETTLE_S
        while (found := self._differences()) and time.monotonic() < deadline:
            time.sleep(0.1)
        rest = [f"{len(found) - NAMED} more files"] if len(found) > NAMED else []
        return [f"data lost: {what}" for what in [*found[:NAMED], *rest]]

    def drain(self) -> None:
        """See Storage; the disks of the hosts are its media."""
        self.context.nodes.call(f"{_HERE}.node:write_back")

    def stop(self) -> None:
        """See Storage."""
        nodes = self.context.nodes
        try:
            nodes.call(f"{_HERE}.node:stop_filesystem_node", mount=str(self.mount))
        finally:
            if self._gfarmbb:
                self._gfarmbb.stop()
            else:
                nodes.call(f"{_HERE}.node:stop_metadata_server")

    def describe(self) -> Mapping[str, object]:
        """See Storage; the spools are told of the first host, the others' are alike."""
        return {
            "type": "fuse.gfarm2fs",
            **self._hosts[self.context.hosts[0].name],
            "launcher": self.options.launcher,
            "metadata": "in memory",
            "filesystem_nodes": len(self.context.hosts),
        }

    def _differences(self) -> list[str]:
        nodes, head = self.context.nodes, self.context.hosts[0].name
        listed = nodes.call(f"{_HERE}.integrity:listing", head=head, **self._served)[head]
        spools = nodes.call(f"{_HERE}.integrity:replicas")
        held = [Replica(*replica) for spool in spools.values() for replica in spool]
        return differences((File(*file) for file in listed), held)

    def _told(self, host: str, what: str) -> str:
        return what if len(self.context.hosts) == 1 else f"{host}: {what}"
