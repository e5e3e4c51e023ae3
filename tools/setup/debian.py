"""Debian packages from the lists ``envs/*/debian.txt``: what is missing, and installing it."""

import os
import shutil
from pathlib import Path

from burstlab.doctor import environments
from burstlab.doctor.environments import Environment
from tools.setup import services
from tools.setup.failure import PackagesMissing, SetupError, UnknownPart
from tools.setup.once import last_lines, run

APT_GET = ("apt-get", "-o", "DPkg::Lock::Timeout=600")


def select(envs: Path, parts: str | None) -> dict[str, Environment]:
    """The environments named in ``parts`` (words; None: all that are not optional)."""
    known = environments.load(envs)
    bootstrap = known.pop("setup")
    if parts is None:
        return {name: one for name, one in known.items() if not one.optional}
    for name in parts.split():
        if name not in {**known, "setup": bootstrap}:
            raise UnknownPart(f"PARTS: no {name!r} in envs/ (there are: {' '.join(known)})")
    return {name: {**known, "setup": bootstrap}[name] for name in parts.split()}


def missing(wanted: dict[str, Environment]) -> dict[str, tuple[str, ...]]:
    """The packages to install for each environment that is not there.

    Programs may also come from modules or conda: for who can't install packages, an environment
    is there when all its commands are found.
    """
    names = [package for environment in wanted.values() for package in environment.packages]
    installed = environments.installed_packages(names)
    result = {}
    for name, environment in wanted.items():
        absent = tuple(p for p in environment.packages if p not in (installed or ()))
        elsewhere = environment.commands and not environment.missing_commands()
        if absent and (can_install() or not elsewhere):
            result[name] = absent
    return result


def can_install() -> bool:
    """Whether this is root on a machine with apt."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(missing: dict[str, tuple[str, ...]], directory: Path) -> bool:
    """Install what is missing with one call of apt-get; returns whether everything is there now.

    Package lists are fetched only when the first try fails, since a fresh machine has none and an
    old machine's are stale. Raises SetupError when the second try fails too.
    """
    services.allow_again()
    if not missing or not can_install():
        return False
    packages = list(dict.fromkeys(package for names in missing.values() for package in names))
    print(f"setup: installing {len(packages)} Debian packages: {' '.join(packages)}", flush=True)
    log = directory / "setup.log"
    command = [*APT_GET, "install", "--yes", "--no-install-recommends", *packages]
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1"}
    with services.not_started():
        done, output = run(command, log, quiet, keep_lock=False)
        if not done:
            if "dpkg --configure -a" in output:  # an installation was cut short
                run(["dpkg", "--configure", "-a"], log, quiet, keep_lock=False)
            run([*APT_GET, "update"], log, quiet, keep_lock=False)
            done, output = run(command, log, quiet, keep_lock=False)
    if not done:
        raise SetupError(f"apt-get can't install the packages ({log}):\n{last_lines(output)}")
    return True


def ways_to_get(
    wanted: dict[str, Environment], missing: dict[str, tuple[str, ...]]
) -> PackagesMissing:
    """What is missing and the three ways to get it, for a user who can't install packages."""
    width = max(map(len, missing))
    packages = list(dict.fromkeys(package for names in missing.values() for package in names))
    lines = ["these programs are missing, and only root on a Debian machine can install them here:"]
    lines += [f"  {name:{width}}  {' '.join(names)}" for name, names in missing.items()]
    lines += ["three ways to get them, then run make again:"]
    lines += [f"  apt      (root) apt-get install --no-install-recommends {' '.join(packages)}"]
    lines += [f"  conda    {_conda(wanted, missing)}"]
    lines += [f"  modules  module load what puts these on PATH: {_commands(wanted, missing)}"]
    if "setup" not in missing:
        rest = " ".join(name for name in wanted if name not in missing)
        lines += [f'or go on without them: add PARTS="{rest}" (what needs them is then skipped)']
    return PackagesMissing("\n".join(lines))


def _conda(wanted: dict[str, Environment], missing: dict[str, tuple[str, ...]]) -> str:
    known = {name: environment.conda for name, environment in wanted.items()}
    known["setup"] = Path("envs/setup/conda.yaml")
    updates = [f"conda env update --file envs/{name}/conda.yaml" for name in missing if known[name]]
    lacking = [name for name in missing if not known[name]]
    if lacking:
        updates.append(f"(nothing known for: {' '.join(lacking)})")
    return "  ".join(updates)


def _commands(wanted: dict[str, Environment], missing: dict[str, tuple[str, ...]]) -> str:
    names = ["uv"] if "setup" in missing else []
    for environment in wanted.values():
        if environment.name in missing:
            names += [command.name for command in environment.missing_commands()]
    return " ".join(dict.fromkeys(names)) or "(only libraries are missing)"
