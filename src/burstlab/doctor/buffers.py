"""Burst buffers that a site has or has not: no package that burstlab could name makes one."""

from collections.abc import Callable
from pathlib import Path

from burstlab.config.site import SITES, load_site
from burstlab.doctor.environments import find_command
from burstlab.storage.provided import expand

REMEDIES = {
    "beeond": "where BeeGFS's client and servers are installed, their package beeond has it",
    "provided": "ask the scheduler for one with the job, and look from inside the job",
}


def beeond(root: Path) -> str | None:
    """Why no BeeOND can be started here."""
    if find_command("beeond"):
        return None
    return "the command beeond is missing: this machine has no BeeGFS On Demand"


def provided(root: Path) -> str | None:
    """Why none of the sites' schedulers has given one to whoever asks."""
    wanted = []
    for path in sorted((root / SITES).glob("*.yaml")):
        options = load_site(path.stem, root).storages.get("provided", {})
        if place := options.get("path"):
            found, missing = expand(place)
            if not missing and Path(found).is_dir():
                return None
            wanted.append(f"{path.stem}'s {place}")
    return f"no scheduler has given one here: there is no {', no '.join(wanted) or 'site that has'}"


PROBLEMS: dict[str, Callable[[Path], str | None]] = {"beeond": beeond, "provided": provided}
