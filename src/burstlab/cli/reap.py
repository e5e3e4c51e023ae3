"""Clean what dead cells of this user left on this host: processes, mounts, directories."""

import argparse
import sys

from burstlab import lease


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def main(arguments: argparse.Namespace) -> int:
    """Exit status 1 when something could not be cleaned; it is named."""
    before = len(lease.leases())
    problems = lease.reap()
    after = len(lease.leases())
    print(f"{before - after} stale lease(s) reaped, {after} left")
    for problem in problems:
        print(f"burstlab reap: {problem}", file=sys.stderr)
    return 1 if problems else 0
