"""Stages a data set to all hosts at once, by any method, and accounts for its phases."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstlab.dataset.manifest import Manifest
from burstlab.errors import NodeError, StagingError
from burstlab.nodes import Nodes, VirtualNodes

LOOK_S = 0.25  # a signal is heeded as soon
METHODS = "burstlab.staging.methods"
RUNNING = "burstlab.staging.running"

# Phase, files, bytes: of the host that is furthest behind; of shards, of all hosts together.
# Nothing is counted while a program of others copies or unpacks.
Watch = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Staged:
    """What was done, for the user and for records."""

    method: str
    hosts: int
    files: int  # of the data set
    arrived: int  # of these: on the host with least or, of shards, on all hosts together
    size_bytes: int
    files_here: int  # on the host with most; of method shard each has a part
    present: int  # files that were there before, on all hosts together
    elapsed_s: float  # until every host had everything
    phases: Mapping[str, float]  # seconds of the slowest host in each; `pack` is done once

    def describe(self) -> dict[str, Any]:
        """For a record."""
        return {
            "method": self.method,
            "hosts": self.hosts,
            "files": self.files,
            "bytes": self.size_bytes,
            "present": self.present,
            "elapsed_s": self.elapsed_s,
            "phases": dict(self.phases),
        }


class Staging:
    """One data set on its way to one target on each host."""

    def __init__(
        self,
        nodes: Nodes,
        manifest: Manifest,
        source: Path,
        targets: Mapping[str, Path],
        watch: Watch = lambda phase, files, size_bytes: None,
    ) -> None:
        """``targets`` by host name, for all hosts or some; manifest and source are paths that all
        hosts see."""
        self._nodes, self._manifest, self._watch = nodes, manifest, watch
        self._names = list(targets)
        self._source = source
        self._common = {
            "manifest": str(manifest.path.absolute()),
            "targets": {name: str(path) for name, path in targets.items()},
        }

    def run(self, method: str) -> Staged:
        """Do it. Raises StagingError naming the host and the first file; then nothing runs any
        more, and what has its name is whole."""
        began, phases = time.monotonic(), dict[str, float]()
        try:
            getattr(self, f"_begin_{method}")(phases)
            states = self._wait_for_all(method)
        except NodeError as error:
            raise StagingError(str(error)) from error
        finally:
            self._end()
        for state in states.values():
            for phase, elapsed_s in state["phases"].items():
                phases[phase] = max(phases.get(phase, 0.0), elapsed_s)
        return Staged(
            method=method,
            hosts=len(self._names),
            files=self._manifest.file_count,
            arrived=self._arrived(method, states),
            size_bytes=self._manifest.size_bytes,
            files_here=max(state["files"] for state in states.values()),
            present=sum(state["present"] for state in states.values()),
            elapsed_s=time.monotonic() - began,
            phases=phases,
        )

    def _begin_copy(self, phases: dict[str, float]) -> None:
        self._call("copy_here", source=str(self._source))

    def _begin_shard(self, phases: dict[str, float]) -> None:
        self._call("shard_here", source=str(self._source), hosts=self._names)

    def _begin_paper(self, phases: dict[str, float]) -> None:
        self._call("paper_here", source=str(self._source))

    def _begin_archive(self, phases: dict[str, float]) -> None:
        """The archive is made once; later stagings of the data set find it."""
        from burstlab.staging import archive

        began = time.monotonic()
        if archive.pack(self._manifest, self._source, lambda *done: self._watch("pack", *done)):
            phases["pack"] = time.monotonic() - began
        path = archive.archive_of(self._manifest)
        self._call("unpack_here", archive=str(path.absolute()))

    def _begin_tree(self, phases: dict[str, float]) -> None:
        """All listen before anybody connects."""
        import secrets

        began = time.monotonic()
        token = secrets.token_hex(16)
        ports = self._call("listen_here", hosts=self._names, token=token)
        phases["listen"] = time.monotonic() - began
        here = isinstance(self._nodes, VirtualNodes)  # whose names may be those of real hosts
        addresses = {
            name: f"{'localhost' if here else name}:{port}" for name, port in ports.items() if port
        }
        self._call(
            "broadcast_here",
            source=str(self._source),
            hosts=self._names,
            addresses=addresses,
            token=token,
        )

    def _call(self, action: str, **arguments: Any) -> dict[str, Any]:
        return self._nodes.call(f"{METHODS}:{action}", **self._common, **arguments)

    def _wait_for_all(self, method: str) -> dict[str, dict[str, Any]]:
        while True:
            states = self._look()
            failed = {name: state for name, state in states.items() if "error" in state}
            if failed:
                self._fail(failed)
            self._tell(method, list(states.values()))
            if all(state["ended"] for state in states.values()):
                return states

    def _tell(self, method: str, states: Sequence[Mapping[str, Any]]) -> None:
        slowest = min(states, key=lambda state: state["size_bytes"])
        counted = states if method == "shard" else [slowest]
        files, size_bytes = (sum(s[what] for s in counted) for what in ("files", "size_bytes"))
        self._watch(slowest["doing"], files, size_bytes)

    def _look(self) -> dict[str, dict[str, Any]]:
        states = self._nodes.call(f"{RUNNING}:look_here", wait_s=LOOK_S)
        return {name: states[name] for name in self._names}

    def _fail(self, failed: Mapping[str, Mapping[str, Any]]) -> None:
        """Whoever lost a neighbour waits a moment for the neighbour's own reason."""
        deadline = time.monotonic() + 5.0
        while all(state["lost"] for state in failed.values()) and time.monotonic() < deadline:
            failed = {name: state for name, state in self._look().items() if "error" in state}
        name = min(failed, key=lambda name: (failed[name]["lost"], self._names.index(name)))
        raise StagingError(f"{name}: {failed[name]['error']}")

    def _arrived(self, method: str, states: Mapping[str, Mapping[str, Any]]) -> int:
        """The manifest's count is what was wanted, on each host or, of shards, in all."""
        counts = {name: int(state["files"]) for name, state in states.items()}
        if method == "shard":
            counts = {"all hosts": sum(counts.values())}
        name = min(counts, key=counts.__getitem__)
        if counts[name] != self._manifest.file_count:
            raise StagingError(
                f"{name}: {counts[name]} files of {self._manifest.file_count} arrived: stage again"
            )
        return counts[name]

    def _end(self) -> None:
        """Stop what still runs."""
        with suppress(NodeError):  # the host that is lost, which is told with the first error
            self._nodes.call(f"{RUNNING}:end_here")
