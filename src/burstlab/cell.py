"""One cell, from its hosts to its record; the life cycle that `burstlab run` promises.

allocation → storage → staging → cache state → workload → check → drain and verify → stage_out
→ teardown → record. Teardown is in one place and always runs; what no handler can catch is
covered by the lease.
"""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burstlab import cache, lease, record, reports, surroundings
from burstlab.celldir import CellDirectory
from burstlab.errors import (
    BurstlabError,
    CheckError,
    ConfigurationError,
    Skipped,
    StorageError,
)
from burstlab.hosting import own_directory, parallel_file_system, reach_nodes
from burstlab.lease import WORKLOAD, Lease
from burstlab.nodes import Nodes, VirtualNodes
from burstlab.pfs.site import ParallelFileSystem
from burstlab.progress import Timeline, failure_block
from burstlab.provenance import CpuUse, memory_bytes, provenance
from burstlab.record import Record
from burstlab.request import Request
from burstlab.stopping import Stopped, StopSignals
from burstlab.storage.interface import Context, Storage
from burstlab.supervision import Supervisor, ended_how, last_words
from burstlab.verdict import WorkloadFailed, verdict

if TYPE_CHECKING:
    from burstlab.lazy import LazyStaging
    from burstlab.tracing.cell import CellTrace

MOST_CPU_OF_OTHERS = 0.2  # of all cores of the host, the whole cell long
JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "PJM_JOBID", "JOB_ID")  # what schedulers set in theirs
LOGS = ("workload.log", "check.log", "agents.log")


class Cell:
    """Runs one request; ``run`` is called once."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.timeline = Timeline(request.title)
        self.issues: list[str] = []
        self.facts: dict[str, Any] = {}  # fields of the record as they become known
        self.job: Mapping[str, Any] | None = None
        self.lease: Lease
        self.supervisor: Supervisor
        self.nodes: Nodes
        self.storage: Storage
        self.pfs: ParallelFileSystem
        self.lazy: LazyStaging | None = None
        self.trace: CellTrace | None = None

    def run(self) -> Record:
        """The record, written; its exit status is the process's. Raises BurstlabError only when
        nothing could be recorded."""
        started, load_before, cpu = time.localtime(), os.getloadavg()[0], CpuUse()
        directory = CellDirectory(self.request.cell_dir, self.request.key.id)
        directory.take()
        status, reason, exit_status, phase = "ok", "", 0, ""
        stop = StopSignals(self.request.time_limit_s)
        with stop.active():
            try:
                try:
                    self._work()
                finally:
                    stop.hold()  # from here on, what is told and cleaned is told and cleaned
            except Skipped as skip:
                status, reason = "skipped", str(skip)
            except (Exception, Stopped) as error:
                status, phase = "failed", self.timeline.phase
                reason, exit_status = verdict(
                    error, getattr(self, "nodes", None), getattr(self, "supervisor", None)
                )
            self._teardown()
            self.issues += _conditions(self.request, cpu if self._all_here() else None)
            done = Record(
                status=status,
                reason=reason,
                exit_status=exit_status,
                cell=self.request.key,
                started=time.strftime("%Y-%m-%dT%H:%M:%S%z", started),
                spans=tuple(self.timeline.spans),
                hosts=self.request.allocation.hosts,
                command=self.request.command,
                provenance={
                    **provenance(load_before, Path.cwd()),
                    "allocation": self.request.allocation.origin,
                    "scheduler": self.job or _job_facts(),
                },
                issues=tuple(self.issues),
                **self.facts,
            )
            try:
                directory.require_ours()
                record.write(done, self.request.cell_dir)
            finally:
                directory.release()
        if status == "failed":
            self._print_failure(phase, reason)
        elif status == "skipped":
            print(f"skipped: {reason}", file=sys.stderr)
        return done

    def _work(self) -> None:
        request = self.request
        if request.trace:
            from burstlab.tracing.cell import CellTrace

            self.trace = CellTrace(request.cell_dir, request.trace)
            self.facts["trace"] = self.trace.tool  # however it ends
            self.issues += self.trace.caveats
        with self.timeline.span("allocation"):
            self._hold_hosts()
        if why := self.storage.unavailable():
            raise Skipped(why)
        with self.timeline.span("pfs"):
            self.pfs.start(self.supervisor)
        with self.timeline.span("provision"):
            self.storage.start()
        self.supervisor.problems = lambda: [*self.nodes.deaths(), *self.storage.problems()]
        self.facts["storage"] = {"name": self.storage.name, "mount": str(self.storage.mount)}
        self.facts["storage"] |= dict(self.storage.describe())
        self.facts["pfs"] = dict(self.pfs.describe())
        if request.manifest:
            self.facts["dataset"] = request.manifest.describe()
        work, data = self.storage.mount / "work", self._data_directory()
        self._make_work(work)
        if request.staging == "eager":
            with self.timeline.span("stage_in"):
                self._stage_in(data)
        if request.cache != "as-is":
            with self.timeline.span("cache"):
                self._enforce_cache(data)
        if request.staging == "lazy":
            with self.timeline.span("stage_in"):
                data = self._start_lazy()
        environment = surroundings.environment(request, self.nodes, self.storage, work, data)
        if self.lazy:
            environment = {**environment, "BURSTLAB_AGENT": str(self.lazy.socket)}
        with self.timeline.span("run"):
            self._run_workload(environment)
        if request.check:
            with self.timeline.span("check"):
                self._check(environment)
        with self.timeline.span("drain"):
            self._stop_lazy()
            self._require_healthy(self._apart(self._drain_and_verify))
        if request.stage_out:
            with self.timeline.span("stage_out"):
                self._stage_out(work)
        self._require_healthy([])
        self._read_reports()
        self.job = _job_facts()  # while the daemons run: it forgets what they wrote with them

    def _hold_hosts(self) -> None:
        """Lease, directories and nodes; stale leases of this user on this host go first."""
        request = self.request
        self.issues += lease.reap()
        # What a cell before this one left: killed, this one has none of it.
        for name in record.FILES + record.TRACES + reports.FILES + LOGS:
            (request.cell_dir / name).unlink(missing_ok=True)
        shutil.rmtree(request.cell_dir / "outputs", ignore_errors=True)
        identifier = request.key.id
        scratch = request.local_dir / f"burstlab-{identifier}"
        self.lease = Lease.create(
            identifier,
            cell_dir=str(request.cell_dir),
            command=list(request.command),
            scratch=str(scratch),
        )
        self.lease.mark()
        self.supervisor = Supervisor(self.lease)
        self.supervisor.tick = self.timeline.tick
        directory = own_directory(scratch, self.lease)
        self.nodes, problems = reach_nodes(request, directory, self.lease)
        self.issues += problems
        self.pfs = parallel_file_system(request, directory, self.lease)
        context = Context(
            id=identifier,
            directory=self.nodes.directory,
            nodes=self.nodes,
            lease=self.lease,
            pfs=self.pfs,
            needs=request.needs,
            time_limit_s=request.time_limit_s,
        )
        self.storage = request.storage(request.storage_options, context)

    def _data_directory(self) -> Path | None:
        """Where the workload reads its data set."""
        if self.request.manifest is None:
            return None
        if self.request.staging == "eager":
            return self.storage.mount / "dataset"
        return self.pfs.seen(self.request.manifest.root)

    def _separate(self) -> bool:
        """Whether each host has a storage of its own, under one path."""
        return not (self.storage.shared or self._all_here())

    def _all_here(self) -> bool:
        """Whether what the cell runs are children of this process, and none a launcher's."""
        return isinstance(getattr(self, "nodes", None), VirtualNodes)

    def _make_work(self, work: Path) -> None:
        if self._separate():
            self.nodes.call("burstlab.staging:make_work_here", path=str(work))
        else:
            work.mkdir(0o700)

    def _stage_in(self, data: Path | None) -> None:
        manifest = self.request.manifest
        assert manifest is not None and data is not None  # the command sees to it
        from burstlab.staging import stage_to

        source = self.pfs.seen(manifest.root)
        how, method = None, self.request.staging_method
        if method == "copy":  # nothing else was asked for, and the storage may have a better way
            how = self._apart(self.storage.stage_in, manifest, source, data)
        if how is None:
            names = [host.name for host in self.nodes.hosts]
            hosts = names if self._separate() else names[:1]  # one storage is filled once
            how = self._apart(stage_to, self.nodes, manifest, source, data, hosts, method)
        self.facts["dataset"]["staged"] = how

    def _start_lazy(self) -> Path:
        """The data set as the workload sees it from now on."""
        from burstlab.lazy import LazyStaging

        assert self.request.manifest is not None  # the command sees to it
        request, manifest = self.request, self.request.manifest
        source = self.pfs.seen(manifest.root)
        self.lazy = LazyStaging(self.nodes, manifest.path, source, request.order, request.peers)
        self.facts["dataset"]["peers"] = request.peers
        self.lazy.start()
        return self.lazy.data

    def _stop_lazy(self) -> None:
        if self.lazy is not None:
            self.issues += self.lazy.stop()
            self.facts["dataset"]["lazy"] = self.lazy.statistics

    def _stage_out(self, work: Path) -> None:
        from burstlab.staging import stage_out

        target = self.pfs.seen(self.request.cell_dir / "outputs")
        self._apart(stage_out, work, self.request.stage_out, target)

    def _enforce_cache(self, data: Path | None) -> None:
        arguments = {
            "state": self.request.cache,
            "data": str(data or ""),
            "drop_caches": self.request.drop_caches,
        }
        found = self._apart(self._call_nodes, "burstlab.cache:enforce", arguments)
        self.issues += cache.issues(found)
        self.facts["cache"] = found[self.storage.context.hosts[0].name]

    def _call_nodes(self, action: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.nodes.call(action, **arguments)

    def _run_workload(self, environment: Mapping[str, str]) -> None:
        prefix = self.trace.prefix(environment) if self.trace else []
        traced = {**environment, "BURSTLAB_TRACE": shlex.join(prefix)}
        status = self._spawn_and_wait(self.request.command, "workload.log", traced, prefix)
        if status != 0:
            raise WorkloadFailed(status, reports.failure(self.request.cell_dir))

    def _check(self, environment: Mapping[str, str]) -> None:
        status = self._spawn_and_wait(self.request.check, "check.log", environment)
        if status != 0:
            said = last_words((self.request.cell_dir / "check.log").read_text(errors="replace"))
            raise CheckError(f"the check refuses the result ({ended_how(status)}): {said}")

    def _spawn_and_wait(
        self,
        command: tuple[str, ...],
        log: str,
        environment: Mapping[str, str],
        prefix: Sequence[str] = (),
    ) -> int:
        with (self.request.cell_dir / log).open("wb") as output:
            try:
                child = self.lease.spawn(command, WORKLOAD, output, environment, prefix=prefix)
            except (FileNotFoundError, PermissionError) as error:
                raise ConfigurationError(str(error)) from error
        status = self.supervisor.wait(child)
        del self.lease.children[WORKLOAD]
        self._require_healthy([])
        return status

    def _drain_and_verify(self) -> list[str]:
        self.storage.drain()
        return self.storage.verify()

    def _require_healthy(self, found: list[str]) -> None:
        if wrong := [*self.supervisor.deaths(), *self.supervisor.problems(), *found]:
            raise StorageError("; ".join(dict.fromkeys(wrong)))

    def _read_reports(self) -> None:
        self.timeline.phase = "report"
        facts, issues = reports.read(self.request.cell_dir)
        self.facts |= facts
        self.issues += issues

    def _teardown(self) -> None:
        if not hasattr(self, "lease"):
            return
        with self.timeline.span("teardown"):
            if self.lease.children:  # daemons that the workload may still be using
                self.lease.end_workload()
            if hasattr(self, "storage"):
                for stop in (self._stop_lazy, self.storage.stop, self.nodes.close, self.pfs.stop):
                    self._stop(stop)
            left = self.lease.clean()
            if left:
                self.issues += [f"left behind: {what} (burstlab reap)" for what in left]
            else:
                self.lease.release()
        if self.trace and hasattr(self, "nodes"):
            self._stop(self._collect_trace)

    def _collect_trace(self) -> list[str]:
        """Once all that is traced has ended: of a run that was stopped it is not whole."""
        assert self.trace is not None
        hosts = 1 if self._all_here() else len(self.request.allocation.hosts)
        self.facts["trace"], issues = self.trace.collect(hosts)
        return issues

    def _stop(self, stop: Callable[[], Any]) -> None:
        """One step of the teardown; the next comes, and the record, whatever this one does."""
        try:
            self.issues += stop() or []
        except Exception as error:
            if not isinstance(error, BurstlabError | OSError):
                sys.excepthook(type(error), error, error.__traceback__)
            self.issues.append(f"teardown: {str(error) or repr(error)}")

    def _apart(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Work on the mount, in a child that may hang without taking us along.

        Agents are asked by one process at a time: by the child, as long as there is one.
        """
        problems = self.supervisor.problems
        if not self._all_here():
            self.supervisor.problems = list
        try:
            return self.supervisor.call(function, *arguments)
        finally:
            self.supervisor.problems = problems

    def _print_failure(self, phase: str, reason: str) -> None:
        request = self.request
        logs = [request.cell_dir / name for name in LOGS]
        repeat = request.repeat_command or request.command
        block = failure_block(
            phase, reason, request.allocation.hosts, request.cell_dir, repeat, logs
        )
        print(block, file=sys.stderr)


def _job_facts() -> Mapping[str, Any] | None:
    """Nothing outside of a job, where cells need not pay for the import either."""
    if not any(name in os.environ for name in JOBS):
        return None
    from burstlab.scheduler import accounting

    return accounting.facts()


def _conditions(request: Request, cpu: CpuUse | None) -> list[str]:
    """Validity issues of the machine and the data set; without ``cpu``, not of its processors."""
    issues = []
    if cpu and (others := cpu.share_of_others()) > MOST_CPU_OF_OTHERS:
        issues.append(f"others used {others:.0%} of this host's processors meanwhile")
    manifest, memory = request.manifest, memory_bytes()
    if manifest and manifest.size_bytes < memory and request.cache != "cold":
        issues.append(
            f"the data set ({manifest.size_bytes / 1e6:.0f} MB) fits in memory "
            f"({memory / 1e9:.0f} GB) and the cache was {request.cache}"
        )
    return issues
