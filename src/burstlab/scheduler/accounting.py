"""What the scheduler knows of the job that a cell runs in, for the record.

On Slurm through PySlurm where it is there and made for the cluster's version, else through
``scontrol`` and ``sstat``, with equal results. Sources: scontrol(1), sstat(1) of 22.05; PySlurm's
documentation of ``Job`` and ``JobStep``, whose names here are those of 25.x.
"""

import importlib
import os
import re
from collections.abc import Mapping
from typing import Any

from burstlab.scheduler.asking import ask
from burstlab.scheduler.interface import SchedulerError, no_answer

# variable of a job -> scheduler; NQSV sets PBS_JOBID too, with a number and a colon in front
_VARIABLES = {"SLURM_JOB_ID": "slurm", "PBS_JOBID": "pbs", "PJM_JOBID": "pjm"}


def facts(environment: Mapping[str, str] = os.environ) -> Mapping[str, Any] | None:
    """None outside of a job. Of a job of Slurm:

    queue_wait_s and elapsed_s (whole seconds, until now), nodes, and disk_read_bytes and
    disk_write_bytes of all processes of the batch step (read and written by system calls, cached or
    not; None where Slurm gathers nothing). ``problem`` tells why something is missing.
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
    return module if mine == cluster and hasattr(module.JobStep, "load_stats") else None


def _loaded(pyslurm: Any, job: int) -> dict[str, Any]:
    loaded = pyslurm.Job.load(job)
    step = pyslurm.JobStep.load(job, "batch").load_stats()
    nodes = loaded.allocated_nodes
    return {
        "queue_wait_s": loaded.start_time - loaded.submit_time,
        "elapsed_s": loaded.run_time,
        "nodes": _expanded(nodes if isinstance(nodes, str) else ",".join(nodes)),
        # The batch step is one task, so its average is its sum.
        "disk_read_bytes": step.avg_disk_read,
        "disk_write_bytes": step.avg_disk_write,
    }


def _asked(job: int) -> dict[str, Any]:
    answer = ask(["env", "SLURM_TIME_FORMAT=%s", "scontrol", "--oneliner", "show", "job", str(job)])
    told = dict(re.findall(r"(\w+)=(\S*)", answer.stdout))
    if answer.status != 0 or not {"SubmitTime", "StartTime", "RunTime", "NodeList"} <= told.keys():
        raise no_answer("scontrol", answer)
    return {
        "queue_wait_s": int(told["StartTime"]) - int(told["SubmitTime"]),
        "elapsed_s": _seconds(told["RunTime"]),
        "nodes": _expanded(told["NodeList"]),
        **_disk(job),
    }


def _disk(job: int) -> dict[str, int | None]:
    columns = "--format=TresUsageInTot,TresUsageOutTot"
    answer = ask(["sstat", "--noheader", "--parsable2", columns, "-j", f"{job}.batch"])
    both = answer.stdout.strip().split("|") if answer.status == 0 else []
    found = [re.search(r"fs/disk=(\d+)", text) for text in both]
    read, written = (
        [int(one[1]) if one else None for one in found] if len(found) == 2 else 2 * [None]
    )
    return {"disk_read_bytes": read, "disk_write_bytes": written}


def _seconds(text: str) -> int:
    """Of [days-]hours:minutes:seconds."""
    days, _, rest = text.rpartition("-")
    hours, minutes, seconds = (int(part) for part in rest.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _expanded(nodes: str) -> list[str]:
    from ClusterShell.NodeSet import NodeSet

    return list(NodeSet(nodes))
