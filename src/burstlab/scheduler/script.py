"""The script that a scheduler runs, and the word that it leaves of its start and its end.

This word is the first witness: it stays when the scheduler has forgotten the job. Lines of
``N.start`` and ``N.exit`` are a name and a value; ``nodes`` may come several times.
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from burstlab.scheduler.jobs import JOBS, Job

# What the commands of a job need that is not given by the scheduler: `qsub -V` may pass nothing.
# BASH_ENV and its like: what makes `module` known to every shell (--sdm env-modules).
_KEPT = re.compile(
    r"PATH|PYTHONPATH|LD_LIBRARY_PATH|VIRTUAL_ENV|BURSTLAB_\w+|XDG_CACHE_HOME"
    r"|BASH_ENV|MODULEPATH|MODULESHOME|LMOD_\w+"
)

_WRAPPER = """\
#!/bin/bash
# Runs one job of Snakemake and leaves word of its start and its end.
cd {root} || exit 125
word={word}
tell() {{ printf '%s %s\\n' "$@"; }}
nodes() {{
    for file in "$PBS_NODEFILE" "$PE_HOSTFILE" "$PJM_O_NODEINF"; do
        [ -r "$file" ] && awk '!seen[$1]++ {{ print "nodes", $1 }}' "$file" && return
    done
    tell nodes "${{SLURM_JOB_NODELIST:-$(hostname)}}"
}}
leave() {{ cat > "$word.$1.partial" && mv "$word.$1.partial" "$word.$1"; }}
id=${{SLURM_JOB_ID:-${{PBS_JOBID:-${{PJM_JOBID:-$JOB_ID}}}}}}
{{ tell id "$id"; tell start "$(date +%s.%N)"; nodes; }} | leave start
{exports}
# Traps, so that both shells wait for what they run when all of the job is told to end. A warning
# is for the cell, which sets handlers of its own: Snakemake would die of it, and with it the job.
trap : TERM INT HUP
trap '' USR1 USR2 XCPU
(trap : TERM INT HUP; . "$word.job")
status=$?
{{ tell exit "$status"; tell end "$(date +%s.%N)"; }} | leave exit
exit "$status"
"""


@dataclass(frozen=True)
class Witness:
    """The word of a job; times are Unix times, None: not yet."""

    id: str = ""
    start_s: float | None = None
    hosts: tuple[str, ...] = ()
    exit_status: int | None = None
    end_s: float | None = None


def write(job: Job, jobscript: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Write the scripts of a submission; returns the one to submit.

    The job runs a copy of Snakemake's script, which goes away with the Snakemake that wrote it.
    """
    kept = {name: text for name, text in sorted(environment.items()) if _KEPT.fullmatch(name)}
    exports = "\n".join(f"export {name}={shlex.quote(text)}" for name, text in kept.items())
    script, root = job.file("sh"), Path.cwd()
    for old in script.parent.glob("[0-9]*.*"):
        old.unlink()
    word = shlex.quote(str(JOBS / job.name / str(job.attempt)))
    text = _WRAPPER.format(root=shlex.quote(str(root)), word=word, exports=exports)
    job.file("job").write_text(jobscript)
    script.write_text(text)
    script.chmod(0o755)
    return root / script


def witness(job: Job) -> Witness:
    """What the job left so far."""
    told: dict[str, list[str]] = {}
    for kind in ("start", "exit"):
        try:
            text = job.file(kind).read_text()
        except FileNotFoundError:
            continue
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            told.setdefault(name, []).append(value)
    first = {name: values[0] for name, values in told.items()}
    return Witness(
        id=first.get("id", ""),
        start_s=float(first["start"]) if "start" in first else None,
        hosts=tuple(told.get("nodes", ())),
        exit_status=int(first["exit"]) if "exit" in first else None,
        end_s=float(first["end"]) if "end" in first else None,
    )


def last_line(job: Job) -> str:
    """Of the job's log: schedulers write there why they ended it."""
    try:
        with job.file("log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
            lines = log.read().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
