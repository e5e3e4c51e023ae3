"""Submit the job script of a cell to the site's scheduler, and print the job's id.

For Snakemake's profiles. A cell whose job is still queued or running gets the id of that one.
"""

import argparse
from pathlib import Path

from burstlab.scheduler.submitting import site_facts, submit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a profile gives, and Snakemake adds."""
    parser.add_argument("--site", required=True, help="config/sites/NAME.yaml says how")
    parser.add_argument("jobscript", type=Path, help="made by Snakemake")


def main(arguments: argparse.Namespace) -> int:
    """Print the id."""
    print(submit(site_facts(arguments.site), arguments.jobscript))
    return 0
