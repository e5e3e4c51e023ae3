"""TeraGen, TeraSort and TeraValidate: each one job, timed as a user waits for it."""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import history
from cluster import Cluster
from failure import Failed

from burstlab.process import Identity, end
from burstlab.supervision import ended_how, last_words

EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"
ASK_S = 0.05
GRACE_S = 2.0
_JOB = re.compile(r"Running job: (job_\d+_\d+)")
# What a client tells of a failure, the one that explains most first.
_CAUSES = (
    re.compile(r"(Container \S+ is running beyond .+? of .+? memory used)"),
    re.compile(r"^Error: (.*)$", re.M),
    re.compile(r"((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): .*)"),
)
# What was tried again is no cause: where it was given up, that is told besides.
_RETRIED = re.compile(
    r"^\d{4}-\S+ \S+ (?:WARN|INFO retry\.).*(?:\n(?:\s|Caused by: |\S+(?:Exception|Error)\b).*)*",
    re.M,
)
_MEMORY = re.compile("heap space|OutOfMemory|memory limits|GC overhead")
_CONSEQUENCES = (
    re.compile(r"Job \S+ failed with state \w+ due to: (.*)"),
    re.compile(r" ERROR (.*)"),
)


@dataclass(frozen=True)
class Job:
    """One that came to a good end."""

    program: str
    id: str
    start_s: float  # Unix time
    elapsed_s: float  # from the start of the client to its end


def run(cluster: Cluster, program: str, arguments: Sequence[str]) -> Job:
    """One program to its end, watching the cluster meanwhile. Raises Failed with the cause."""
    start_s, begun = time.time(), time.monotonic()
    client = cluster.spawn(program, *cluster.command(EXAMPLES, program, *arguments))
    try:
        while client.poll() is None:
            cluster.check()
            time.sleep(ASK_S)
    finally:
        if client.poll() is None:
            with suppress(ProcessLookupError):
                end([Identity.of(client.pid)], GRACE_S)
            client.poll()
    elapsed_s = time.monotonic() - begun
    said = cluster.log(program).read_text(errors="replace")
    job = _JOB.search(said)
    if client.returncode != 0 or job is None:
        cluster.check()  # a daemon that died is the cause behind whatever else went wrong
        how = ended_how(client.returncode)
        why = _cause(cluster, said)
        memory = cluster.parameters.container_memory_mb
        hint = f" (TERASORT_CONTAINER_MEMORY_MB={memory})" if _MEMORY.search(why) else ""
        raise Failed(f"{program} ended with {how}: {why}{hint}")
    return Job(program, job[1], start_s, elapsed_s)


def _cause(cluster: Cluster, said: str) -> str:
    told = said
    if job := _JOB.search(said):
        application = cluster.application(job[1].replace("job_", "application_"))
        told += "\n" + str(application.get("diagnostics", ""))
        final = _RETRIED.sub("", told)
        if not any(pattern.search(final) for pattern in _CAUSES):  # the client may have missed it
            told += "\n" + "\n".join(history.failures(cluster.place.mount / "history", job[1]))
    return cause(told)


def cause(told: str) -> str:
    """Why a job failed, in one line, from all that its client and its master told."""
    for text in (_RETRIED.sub("", told), told):
        for pattern in (*_CAUSES, *_CONSEQUENCES):
            if found := pattern.search(text):
                return found[1].strip()
    return last_words(told)
