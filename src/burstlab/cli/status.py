"""Print one word for a job: running, success or failed. Why it failed is told on stderr.

For Snakemake's profiles, which ask often: the scheduler is asked once per polling interval.
"""

import argparse
import dataclasses
import sys
import time

from burstlab.scheduler import answers, jobs, script
from burstlab.scheduler.interface import FAILED, RUNNING, STUCK, SUCCESS
from burstlab.scheduler.jobs import Job
from burstlab.scheduler.verdict import Verdict, judge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The id alone."""
    parser.add_argument("id", help="as `burstlab submit` printed it")


def main(arguments: argparse.Namespace) -> int:
    """Print the word."""
    job = jobs.find(arguments.id)
    if job is None:
        print(f"burstlab status: no job {arguments.id} in {jobs.JOBS}", file=sys.stderr)
        print(FAILED)
        return 0
    print(job.verdict or _look(job))
    return 0


def _look(job: Job) -> str:
    seen, word = None, script.witness(job)
    if word.exit_status != 0:
        seen = answers.seen(job)
        word = script.witness(job)  # it may have ended while the scheduler was asked
    verdict = judge(word, seen, time.time(), job.poll_s)
    if verdict is None:
        return RUNNING
    if seen and seen.state and seen.state.phase == STUCK:
        from burstlab.cli.cancel import cancel

        cancel([job])
    _tell(job, word, verdict)
    return verdict.word


def _tell(job: Job, word: script.Witness, verdict: Verdict) -> None:
    reason = verdict.reason
    if word.exit_status is None and (said := script.last_line(job)):
        reason += f"; the last line of its log: {said}"
    jobs.write(dataclasses.replace(job, verdict=verdict.word, reason=reason))
    if verdict.word == SUCCESS:
        return
    from burstlab.scheduler.failing import record_failure

    path = record_failure(job, word, reason)
    where = f"; {path}" if path else ""
    print(f"job {job.id} of {job.target}: {reason}{where}; log: {job.file('log')}",
          file=sys.stderr)  # fmt: skip
