"""Tell what this machine can run, what not, why, and how to change that.

Exit status 0: all that the demo needs is there, or all commands of the environment are; 1: not.
"""

import argparse
import sys
from pathlib import Path

from burstlab.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[3]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of ``burstlab doctor``."""
    parser.add_argument("--environment", metavar="NAME", help="check one directory of envs/ only")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write versions of its commands as JSON"
    )


def main(args: argparse.Namespace) -> int:
    """Print what was found; returns the exit status."""
    if not (ROOT / "envs").is_dir():
        raise ConfigurationError(f"{ROOT} is no checkout of burstlab: run make setup in one")
    if args.environment is not None:
        return _one_environment(args.environment, args.output)
    if args.output is not None:
        raise ConfigurationError("--output: goes with --environment NAME")
    from burstlab.doctor import findings, table

    found = findings.examine(ROOT)
    table.show(found, sys.stdout)
    return 1 if table.lacking(found) else 0


def _one_environment(name: str, output: Path | None) -> int:
    from burstlab.doctor import environments, versions

    known = environments.load(ROOT / "envs")
    if name not in known:
        raise ConfigurationError(
            f"--environment {name}: not in {ROOT / 'envs'} (there are: {', '.join(known)})"
        )
    missing = versions.missing(known[name])
    if missing:
        print("\n".join(missing), file=sys.stderr)
        return 1
    if output is not None:
        versions.write(known[name], output)
    print(f"{name}: all {len(known[name].commands)} commands found")
    return 0
