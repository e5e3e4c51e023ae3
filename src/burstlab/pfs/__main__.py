"""``python -m burstlab.pfs MOUNTPOINT --export NAME=DIRECTORY ...`` (docs/emulated-pfs.md)."""

import argparse
import sys

from burstlab.errors import BurstlabError
from burstlab.pfs import command


def run() -> int:
    """Exit status; an error is one line on stderr."""
    parser = argparse.ArgumentParser(prog="burstlab.pfs", description=command.__doc__)
    command.add_arguments(parser)
    try:
        return command.main(parser.parse_args())
    except BurstlabError as error:
        print(f"burstlab.pfs: {error}", file=sys.stderr)
        return error.exit_status


sys.exit(run())
