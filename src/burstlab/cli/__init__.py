"""The ``burstlab`` command. Each command is one module, imported only when it is called."""

import argparse
import importlib
import sys
from typing import NoReturn

from burstlab.errors import BurstlabError, ConfigurationError

# command -> (module, one line for --help)
COMMANDS = {
    "run": ("burstlab.cli.run", "run one cell: provision, stage, run, take down, record"),
    "submit": ("burstlab.cli.submit", "submit the job of a cell, unless it has one"),
    "status": ("burstlab.cli.status", "tell whether a submitted job runs, went well or failed"),
    "cancel": ("burstlab.cli.cancel", "cancel submitted jobs"),
    "leases": ("burstlab.cli.leases", "list what cells hold on this host"),
    "reap": ("burstlab.cli.reap", "clean what dead cells left on this host"),
    "probe": ("burstlab.cli.probe", "measure the storage of the cell it runs in"),
    "stage": ("burstlab.cli.stage", "copy a data set to one or many hosts"),
    "dataset": ("burstlab.cli.dataset", "make, verify or list data sets"),
    "doctor": ("burstlab.cli.doctor", "tell what this machine can run, what not, and why"),
    "schema": ("burstlab.cli.schema", "write the JSON schemas of the configuration"),
    "lab": ("burstlab.cli.lab", "a parallel file system or a cluster on this machine"),
}


class Parser(argparse.ArgumentParser):
    """Tells a wrong argument like any other bad input: in one line, with the same status."""

    def error(self, message: str) -> NoReturn:
        """Raises ConfigurationError."""
        raise ConfigurationError(f"{message} (all flags: {self.prog} -h)")


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        return _usage(arguments)
    module = importlib.import_module(COMMANDS[name][0])
    parser = Parser(
        prog=f"burstlab {name}",
        description=module.__doc__,
        allow_abbrev=False,  # expand() looks for full names
    )
    module.add_arguments(parser)
    try:
        words = arguments[1:]
        if hasattr(module, "expand"):
            words = module.expand(words)
        return int(module.main(parser.parse_args(words)))
    except BurstlabError as error:
        print(f"burstlab {name}: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        return 141


def _usage(arguments: list[str]) -> int:
    lines = ["usage: burstlab COMMAND [-h] ...", ""]
    lines += [f"  {name:9} {text}" for name, (_, text) in COMMANDS.items()]
    asked = arguments[:1] in ([], ["-h"], ["--help"])
    if not asked:
        lines.insert(0, f"burstlab: no command {arguments[0]!r}")
    print("\n".join(lines), file=sys.stdout if asked else sys.stderr)
    return 0 if asked else ConfigurationError.exit_status
