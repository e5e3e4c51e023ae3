"""What the scheduler knows of the job that a cell runs in, for the record.

On Slurm through PySlurm where it is there and made for the cluster's version, else through
``scontrol`` and ``sstat``, with equal results. Sources: scontrol(1), sstat(1) of 22.05; PySlurm's
documentation of ``Job`` and ``JobStep``, 22.5 to 25.11 (``load_stats``: since 24.5).
"""

import importlib
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from burstlab.scheduler.asking import ask
from burstlab.scheduler.interface import SchedulerError, no_answer

# variable of a job -> scheduler; NQSV sets PBS_JOBID too, with a number and a colon in front
_VARIABLES = {"SLURM_JOB_ID": "slurm", "PBS_JOBID": "pbs", "PJM_JOBID": "pjm"}


def facts(environment: Mapping[str, str] = os.environ) -> Mapping[str, Any] | None:
    """None outside of a job. Of a job of Slurm:

    queue_wait_s and elapsed_s (whole seconds, until now), nodes, and disk_read_bytes and
    disk_write_bytes of the steps that run (read and written by system calls, cached or not; None
    where Slurm gathers nothing). ``problem`` tells why something is missing.
    """
    for variable, name in _VARIABLES.items():
        if job := environment.get(variable):
            if name != "slurm":
                return {"name": "nqsv" if re.match(r"\d+:", job) else name, "job": job}
            try:
                return {"name": name, "job": job, **_slurm(int(job))}
            except SchedulerError as error:
                return {"name": name, "job": job, "problem": str(error)}
    if "SGE_ROOT" in environment and (job := environment.get("JOB_ID")):
        return {"name": "gridengine", "job": job}
    return None


def _slurm(job: int) -> dict[str, Any]:
    pyslurm = _pyslurm()
    if pyslurm is None:
        return _asked(job)
    try:
        return _loaded(pyslurm, job)
    except pyslurm.RPCError as error:
        raise SchedulerError(f"PySlurm: {error}") from error


def _pyslurm() -> Any:
    """The module, if it is made for the Slurm that is here: first two numbers are the same."""
    try:
        module = importlib.import_module("pyslurm")
    except ImportError:
        return None
    said = ask(["scontrol", "--version"]).stdout
    versions = [re.findall(r"\d+", text)[:2] for text in (module.__version__, said)]
    mine, cluster = ([int(number) for number in version] for version in versions)
    return module if mine == cluster else None


def _loaded(pyslurm: Any, job: int) -> dict[str, Any]:
    loaded = pyslurm.Job.load(job)
    return {
        "queue_wait_s": loaded.start_time - loaded.submit_time,
        "elapsed_s": loaded.run_time,
        "nodes": _expanded(loaded.allocated_nodes),
        **(_loaded_disk(loaded) if hasattr(pyslurm.JobStep, "load_stats") else _asked_disk(job)),
    }


def _loaded_disk(job: Any) -> dict[str, int | None]:
    steps = [(step.ntasks, step.load_stats()) for step in job.steps.values()]
    return _disk((tasks, stats.avg_disk_read, stats.avg_disk_write) for tasks, stats in steps)


def _asked(job: int) -> dict[str, Any]:
    answer = ask(["env", "SLURM_TIME_FORMAT=%s", "scontrol", "--oneliner", "show", "job", str(job)])
    told = dict(re.findall(r"(\w+)=(\S*)", answer.stdout))
    if answer.status != 0 or not {"SubmitTime", "StartTime", "RunTime", "NodeList"} <= told.keys():
        raise no_answer("scontrol", answer)
    return {
        "queue_wait_s": int(told["StartTime"]) - int(told["SubmitTime"]),
        "elapsed_s": _seconds(told["RunTime"]),
        "nodes": _expanded(told["NodeList"]),
        **_asked_disk(job),
    }


def _asked_disk(job: int) -> dict[str, int | None]:
    columns = "--format=NTasks,TresUsageInAve,TresUsageOutAve"
    answer = ask(["sstat", "--allsteps", "--noheader", "--parsable2", columns, "-j", str(job)])
    rows = re.findall(r"^(\d+)\|(.*)\|(.*)$", answer.stdout, re.MULTILINE)
    return _disk((int(tasks), _bytes(read), _bytes(written)) for tasks, read, written in rows)


def _bytes(usage: str) -> int:
    """Of ``cpu=00:00:00,fs/disk=52524825,mem=7880K``."""
    found = re.search(r"fs/disk=(\d+)", usage)
    return int(found[1]) if found else 0


def _disk(steps: Iterable[tuple[int, int, int]]) -> dict[str, int | None]:
    """Of tasks and the means over them of bytes read and written; a step that runs has read."""
    sums = [(tasks * read, tasks * written) for tasks, read, written in steps]
    read, written = (sum(column) for column in zip(*sums, strict=True)) if sums else (0, 0)
    return {"disk_read_bytes": read or None, "disk_write_bytes": written if read else None}


def _seconds(text: str) -> int:
    """Of [days-]hours:minutes:seconds."""
    days, _, rest = text.rpartition("-")
    hours, minutes, seconds = (int(part) for part in rest.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _expanded(nodes: str) -> list[str]:
    from ClusterShell.NodeSet import NodeSet

    return list(NodeSet(nodes))
