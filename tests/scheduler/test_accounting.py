"""The same facts of a job, whoever is asked for them."""

import sys
import types
from pathlib import Path

import pytest

from burstlab.scheduler import accounting

JOB = (
    "JobId=7 JobName=x JobState=RUNNING RunTime=1-00:00:03 SubmitTime=1795240922 "
    "StartTime=1795240925 NodeList=node[01-02] BatchHost=node01\n"
)
USAGE = """\
1|cpu=00:00:00,energy=0,fs/disk=52524825,mem=7880K|energy=0,fs/disk=52433679
2|cpu=00:00:01,energy=0,fs/disk=1000,mem=7880K|energy=0,fs/disk=2000
"""
FACTS = {
    "name": "slurm", "job": "7", "queue_wait_s": 3, "elapsed_s": 86403,
    "nodes": ["node01", "node02"], "disk_read_bytes": 52526825, "disk_write_bytes": 52437679,
}  # fmt: skip


def pyslurm_double(version: str, live: bool = True) -> types.ModuleType:
    """Stands for PySlurm, which can only be built where its own Slurm is.

    Its facts, from the source of 22.5.3, 24.11.0 and 25.11.2: ``Job.load(id)`` has ``submit_time``
    and ``start_time`` (Unix seconds), ``run_time`` (seconds), ``allocated_nodes`` (a range) and
    ``steps`` (by id, those that run), each with ``ntasks`` and, since 24.5, ``load_stats()``, which
    has ``avg_disk_read`` and ``avg_disk_write`` (bytes, mean of the step's tasks); failures raise
    ``RPCError``. 22.5.3 was run for real, in the lab.
    """
    module = types.ModuleType("pyslurm")

    class RPCError(Exception):
        pass

    class JobStep:
        def __init__(self, ntasks: int, read: int, written: int) -> None:
            self.ntasks = ntasks
            self._told = types.SimpleNamespace(avg_disk_read=read, avg_disk_write=written)

        def load_stats(self) -> types.SimpleNamespace:
            return self._told

    if not live:
        del JobStep.load_stats

    class Job:
        submit_time, start_time, run_time = 1795240922, 1795240925, 86403
        allocated_nodes = "node[01-02]"

        @property
        def steps(self) -> dict[str | int, JobStep]:
            return {"batch": JobStep(1, 52524825, 52433679), 0: JobStep(2, 1000, 2000)}

        @staticmethod
        def load(job: int) -> "Job":
            if job != 7:
                raise RPCError("Invalid job id specified")
            return Job()

    vars(module).update(__version__=version, RPCError=RPCError, Job=Job, JobStep=JobStep)
    return module


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """scontrol and sstat that say what the lab's said; a call is noted."""
    scontrol = f'[ "$1" = --version ] && echo "slurm-wlm 25.11.07" || {{ touch {tmp_path}/asked; '
    scontrol += f"printf '{JOB}'; }}"
    for name, text in {"scontrol": scontrol, "sstat": f"printf '{USAGE}'"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


@pytest.mark.parametrize(
    ("module", "asked"),
    [
        (None, True),
        (pyslurm_double("25.11.2"), False),
        (pyslurm_double("25.11.2", live=False), False),
        (pyslurm_double("25.5.0"), True),
    ],
    ids=["commands", "pyslurm", "pyslurm without live numbers", "pyslurm of another version"],
)
def test_facts_of_a_job(
    slurm: Path, monkeypatch: pytest.MonkeyPatch, module: types.ModuleType | None, asked: bool
) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", module)
    assert accounting.facts({"SLURM_JOB_ID": "7"}) == FACTS
    assert (slurm / "asked").exists() == asked


def test_what_pyslurm_can_not_tell_is_a_problem(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", pyslurm_double("25.11.2"))
    told = accounting.facts({"SLURM_JOB_ID": "8"})
    assert told == {"name": "slurm", "job": "8", "problem": "PySlurm: Invalid job id specified"}


def test_what_the_commands_can_not_tell_is_a_problem(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", None)
    (slurm / "scontrol").write_text("#!/bin/sh\necho 'slurm_load_jobs error: down' >&2; exit 1\n")
    told = accounting.facts({"SLURM_JOB_ID": "7"})
    assert told
    assert told["problem"] == "scontrol: slurm_load_jobs error: down"


def test_a_cluster_that_gathers_nothing(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", None)
    (slurm / "sstat").write_text("#!/bin/sh\nexit 1\n")
    told = accounting.facts({"SLURM_JOB_ID": "7"})
    assert told == {**FACTS, "disk_read_bytes": None, "disk_write_bytes": None}


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, None),
        ({"PBS_JOBID": "12.head"}, {"name": "pbs", "job": "12.head"}),
        ({"PBS_JOBID": "0:949571.nqsv"}, {"name": "nqsv", "job": "0:949571.nqsv"}),
        ({"PJM_JOBID": "7"}, {"name": "pjm", "job": "7"}),
        ({"SGE_ROOT": "/sge", "JOB_ID": "7"}, {"name": "gridengine", "job": "7"}),
        ({"JOB_ID": "7"}, None),
    ],
)
def test_jobs_of_others(environment: dict[str, str], told: dict[str, str] | None) -> None:
    assert accounting.facts(environment) == told
