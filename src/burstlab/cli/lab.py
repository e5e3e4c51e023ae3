"""A parallel file system (pfs), or a cluster of N nodes (up, down, ...), on this machine."""

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from burstlab.errors import ConfigurationError
from burstlab.pfs import command as pfs

REPOSITORY = Path(__file__).resolve().parents[3]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One sub-command each."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (text, arguments, main) in SUBCOMMANDS.items():
        sub = commands.add_parser(name, help=text, description=f"{text}.")
        arguments(sub)
        sub.set_defaults(main=main)


def main(arguments: argparse.Namespace) -> int:
    """The sub-command's exit status. Raises BurstlabError."""
    return int(arguments.main(arguments))


def _up_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=4, help="default: 4")
    parser.add_argument("--cores", type=int, default=2, help="of each node; default: 2")
    parser.add_argument("--memory-mb", type=int, default=4000, help="of each node; default: 4000")
    parser.add_argument(
        "--shape-mbit", type=int, default=0, help="of each machine's link, each way; default: none"
    )
    parser.add_argument(
        "--pfs-option", action="append", default=[], metavar="KEY=VALUE", help="emulator's costs"
    )
    parser.add_argument("--scheduler", default="slurm", help="slurm (default) or gridengine")
    parser.add_argument("--accounting", action="store_true", help="slurmdbd and MariaDB as well")
    parser.add_argument("--user", help="whose jobs run; default: who called sudo, else one `lab`")
    _directory_argument(parser)


def _directory_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--directory", type=Path, help="the lab's own directory; default: /var/tmp/burstlab-lab"
    )


def _machine_arguments(parser: argparse.ArgumentParser) -> None:
    _directory_argument(parser)
    parser.add_argument("machine", help="head, node01, node02, ...")


def _exec_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", default="root", help="default: root")
    _machine_arguments(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")


def _up(arguments: argparse.Namespace) -> int:
    from burstlab.cli.run import options
    from burstlab.pfs.emulation import Emulation

    commands, layout = _lab("commands"), _lab("layout")
    names = {field.name for field in dataclasses.fields(layout.Lab)}
    given = {name: value for name, value in vars(arguments).items() if name in names}
    given["user"] = arguments.user or _lab("accounts").default_user()
    given["directory"] = _directory(arguments)
    given["pfs"] = options(Emulation, "--pfs-option", arguments.pfs_option)
    here = (str(path) for path in (Path.cwd(), REPOSITORY, sys.prefix, sys.base_prefix))
    lab = layout.Lab(**given, carry=tuple(here))
    commands.up(lab)
    print(commands.status(lab))
    where = f" --directory {lab.directory}" if arguments.directory else ""
    print(f"log in: burstlab lab exec{where} --user {lab.user} head -- bash")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    _lab("commands").down(_directory(arguments))
    return 0


def _status(arguments: argparse.Namespace) -> int:
    print(_lab("commands").status(_load(arguments)))
    return 0


def _kill(arguments: argparse.Namespace) -> int:
    _lab("commands").kill(_load(arguments), arguments.machine)
    return 0


def _start(arguments: argparse.Namespace) -> int:
    _lab("commands").start(_load(arguments), arguments.machine)
    return 0


def _exec(arguments: argparse.Namespace) -> int:
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not words:
        raise ConfigurationError("give the command to run after --, `-- bash` for a shell")
    return int(
        _lab("commands").execute_on(_load(arguments), arguments.machine, arguments.user, words)
    )


def _directory(arguments: argparse.Namespace) -> Path:
    return Path(arguments.directory or _lab("layout").DEFAULT_DIRECTORY).resolve()


def _load(arguments: argparse.Namespace) -> Any:
    return _lab("layout").Lab.load(_directory(arguments))


def _lab(module: str) -> Any:
    """A module of the lab, which is part of the checkout and not of the installed package."""
    if not (REPOSITORY / "lab/layout.py").exists():
        raise ConfigurationError("the lab needs a checkout of burstlab: run it from there")
    if str(REPOSITORY) not in sys.path:
        sys.path.insert(0, str(REPOSITORY))
    return __import__(f"lab.{module}", fromlist=[module])


# name -> (one line for --help, what adds its arguments, what runs it)
SUBCOMMANDS: dict[
    str,
    tuple[
        str,
        Callable[[argparse.ArgumentParser], None],
        Callable[[argparse.Namespace], int],
    ],
] = {
    "pfs": (
        "mount an emulated parallel file system and serve it, in the foreground",
        pfs.add_arguments,
        pfs.main,
    ),
    "up": ("make a cluster of N nodes with a batch scheduler (root)", _up_arguments, _up),
    "down": ("end a cluster, or clean what is left of one", _directory_argument, _down),
    "status": ("list the machines of a cluster", _directory_argument, _status),
    "kill": ("lose a machine, as when its power fails", _machine_arguments, _kill),
    "start": ("switch a lost machine on again", _machine_arguments, _start),
    "exec": ("run a command on a machine", _exec_arguments, _exec),
}
