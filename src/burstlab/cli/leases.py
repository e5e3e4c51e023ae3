"""List what cells of this user hold on this host."""

import argparse
import time

from burstlab import lease


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def main(arguments: argparse.Namespace) -> int:
    """One block for each lease: whose, since when, and what it holds."""
    found = lease.leases()
    for journal in found:
        held = lease.read(journal)
        since = time.strftime("%F %T", time.localtime(held.about.get("created", 0)))
        state = "live" if lease.is_live(journal) else "stale: `burstlab reap` cleans it"
        print(f"{held.id}  {state}  since {since}  {held.about.get('cell_dir', '')}")
        for process in held.processes:
            if process.alive():
                print(f"  process    {process.pid}")
        for mount in held.mounts:
            print(f"  mount      {mount}")
        for directory in held.directories:
            print(f"  directory  {directory}")
    if not found:
        print(f"no leases in {lease.state_directory()}")
    return 0
