"""The steps of ``make setup``, in order."""

import argparse
import os
import sys
from pathlib import Path

from tools.setup import (
    burstio,
    clean,
    debian,
    environment,
    hadoop,
    interpreter,
    profiles,
    rust,
    separate,
    uvtool,
)
from tools.setup.failure import InTheWay, SetupError
from tools.setup.once import only_one

ROOT = Path(__file__).resolve().parents[2]


def main(argv: list[str]) -> int:
    """Set the checkout up, take back what was set up (``clean``), or resolve burstio's
    crates or Hadoop's jars anew (``lock-crates``, ``lock-jars``); returns the exit status."""
    parser = argparse.ArgumentParser(prog="tools.setup")
    parser.add_argument(
        "action", nargs="?", choices=["setup", "clean", "lock-crates", "lock-jars"], default="setup"
    )
    parser.add_argument("--parts", help="directories of envs/ to set up (default: all)")
    arguments = parser.parse_args(argv)
    os.umask(0o022)  # jobs of other users read the environment
    try:
        with only_one(ROOT / ".tools"):
            if arguments.action == "clean":
                clean.clean(ROOT)
            elif arguments.action == "lock-crates":
                burstio.lock(ROOT)
            elif arguments.action == "lock-jars":
                hadoop.lock(ROOT)
            else:
                set_up(ROOT, arguments.parts)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return error.exit_status
    except OSError as error:  # nowhere to write, no space: the system's own words say which
        told = f"{error.filename}: {error.strerror}"
        print(f"setup: {told}; the checkout must be yours, with room on its disk", file=sys.stderr)
        return InTheWay.exit_status
    except KeyboardInterrupt:
        print("setup: interrupted; make setup goes on from here", file=sys.stderr)
        return 130
    return 0


def set_up(root: Path, parts: str | None) -> None:
    """Bring everything up to date; what can be done is done before what is missing is told."""
    wanted = debian.select(root / "envs", parts)
    missing = debian.missing(wanted)
    if rust.find() is not None:
        missing.pop(burstio.PART, None)
    uv = uvtool.find(root)
    if uv is None and not interpreter.can_install():
        missing["setup"] = debian.select(root / "envs", "setup")["setup"].packages
    changed = debian.install(missing, root / ".tools")
    if changed:
        missing = {}
    if "setup" in missing:  # not even the Python environment can be made
        raise debian.ways_to_get(wanted, missing)
    changed |= environment.bring_up_to_date(root, uv)
    if burstio.PART in wanted and burstio.PART not in missing:
        changed |= burstio.bring_up_to_date(root, uv)
    for name in separate.names(root, wanted):
        changed |= separate.bring_up_to_date(root, name, uv)
    if hadoop.PART in wanted:
        changed |= hadoop.bring_up_to_date(root)
    changed |= profiles.link_all(root)
    if missing:
        raise debian.ways_to_get(wanted, missing)
    print("setup: done" if changed else "setup: nothing to do", flush=True)
