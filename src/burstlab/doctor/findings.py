"""One finding for each thing burstlab can use of a machine."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from importlib import metadata
from pathlib import Path

from burstlab.config.catalog import survey
from burstlab.config.experiment import EXPERIMENTS, load_experiment
from burstlab.doctor import buffers, environments, profiles
from burstlab.doctor.capabilities import CAPABILITIES, environment_problem
from burstlab.doctor.environments import Environment, find_command
from burstlab.provenance import memory_bytes

LITTLE_SPACE = 4 << 30  # bytes; the demo writes about 2 GiB
LITTLE_MEMORY = 2 << 30  # bytes
SUBMIT_COMMANDS = ("sbatch", "qsub", "pjsub")


class State(Enum):
    """Whether it can be used; ``LIMITED``: burstlab runs without it, with less."""

    READY = "yes"
    LIMITED = "limited"
    MISSING = "no"


@dataclass(frozen=True)
class Finding:
    """What was found of one thing, and what to do where it can't be used."""

    subject: str
    state: State
    detail: str
    remedy: str = ""
    needed: bool = False  # for `make demo`


def examine(root: Path) -> list[Finding]:
    """Everything about this machine, for the checkout at ``root``."""
    needed = demo_needs(root)
    return [
        _python(root),
        _snakemake(),
        *_profiles(root),
        _space("disk, results", root),
        _space("disk, scratch", Path(tempfile.gettempdir())),
        _memory(),
        *_programs(root, needed),
        *_rights(),
        _scheduler(),
    ]


def demo_needs(root: Path) -> frozenset[str]:
    """Workloads and storages of the experiments that are part of the demo, and what stages."""
    names: set[str] = set()
    for path in sorted((root / EXPERIMENTS).glob("*.yaml")):
        experiment = load_experiment(path.stem, root)
        if experiment.part_of_demo:
            for cell in experiment.cells(path.stem, "demo"):
                names |= {environments.of_workload(root, cell.block.workload), cell.storage}
                names |= {"rust"} if cell.point["staging"] != "none" else set()
    return frozenset(names)


def _python(root: Path) -> Finding:
    """The environment this runs in, held against the lock."""
    wrong = []
    for name, version in _locked(root / "envs" / "burstlab" / "requirements.lock"):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "missing"
        if found != version:
            wrong.append(f"{name} {found}, not {version}")
    version = ".".join(map(str, sys.version_info[:3]))
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        detail = f"{version} in {sys.prefix}: {', '.join(wrong[:3])}{more}"
        return Finding("python", State.MISSING, detail, "make setup", needed=True)
    return Finding("python", State.READY, f"{version} in {sys.prefix}, as locked", needed=True)


def _locked(lock: Path) -> Iterator[tuple[str, str]]:
    from packaging.requirements import Requirement

    for line in lock.read_text(encoding="utf-8").splitlines():
        if line[:1].isalnum():
            requirement = Requirement(line.rstrip("\\ "))
            if requirement.marker is None or requirement.marker.evaluate():
                yield requirement.name, next(iter(requirement.specifier)).version


def _snakemake() -> Finding:
    path = shutil.which("snakemake")
    if path is None:
        return Finding("snakemake", State.LIMITED, "not on PATH", ". .venv/bin/activate")
    return Finding("snakemake", State.READY, f"{metadata.version('snakemake')}, {path}")


def _profiles(root: Path) -> Iterator[Finding]:
    directory = profiles.configuration_directory()
    for profile in profiles.profiles(root):
        link = directory / profile.name
        state = profiles.state(link, profile)
        if state is profiles.State.LINKED:
            yield Finding(f"--profile {profile.name}", State.READY, f"{link}")
        elif state is profiles.State.ABSENT:
            yield Finding(f"--profile {profile.name}", State.LIMITED, "not linked", "make setup")
        else:
            remedy = f"remove {link} and make setup, or use --profile profiles/{profile.name}"
            detail = f"{link} is {state.value}"
            yield Finding(f"--profile {profile.name}", State.LIMITED, detail, remedy)


def _space(subject: str, directory: Path) -> Finding:
    free = shutil.disk_usage(directory).free
    detail = f"{free / 2**30:.1f} GiB free at {directory}"
    if free < LITTLE_SPACE:
        remedy = f"make room: {LITTLE_SPACE >> 30} GiB are wanted for the demo"
        return Finding(subject, State.LIMITED, detail, remedy)
    return Finding(subject, State.READY, detail)


def _memory() -> Finding:
    size = memory_bytes()
    cores = len(os.sched_getaffinity(0))
    detail = f"{size / 2**30:.1f} GiB, {cores} cores"
    if size < LITTLE_MEMORY:
        return Finding("memory", State.LIMITED, detail, "run fewer cores at once")
    return Finding("memory", State.READY, detail)


def _programs(root: Path, needed: frozenset[str]) -> Iterator[Finding]:
    """What workloads, storages and the rest need of other people's programs."""
    catalog, known = survey(root), environments.load(root / "envs")
    for kind, names in (("workload", catalog.workloads), ("storage", catalog.storages)):
        for name in names:
            own = environments.of_workload(root, name)
            found = _environment(f"{kind} {name}", known.get(own))
            if name in buffers.PROBLEMS and (problem := buffers.PROBLEMS[name](root)):
                remedy = buffers.REMEDIES[name]
                found = Finding(found.subject, State.MISSING, problem, remedy)
            yield replace(found, needed=own in needed)
    of_workloads = {environments.of_workload(root, name) for name in catalog.workloads}
    others = of_workloads | set(catalog.storages)
    for name, environment in known.items():
        if environment.commands and name not in others:
            yield _environment(f"programs {name}", environment)


def _environment(subject: str, environment: Environment | None) -> Finding:
    if environment is None:
        return Finding(subject, State.READY, "needs no other programs")
    problem = environment_problem(environment)
    if problem is None:
        return Finding(subject, State.READY, f"{len(environment.commands)} commands found")
    remedy = ways_to_get(environment)
    if environment.optional:
        return Finding(subject, State.LIMITED, f"{problem}; {environment.optional}", remedy)
    return Finding(subject, State.MISSING, problem, remedy)


def ways_to_get(environment: Environment) -> str:
    """How the programs of an environment are had: packages, conda, modules."""
    lacking = bool(environment.missing_commands())
    if not lacking and not environment.own_python:
        return CAPABILITIES["fuse"].remedy
    ways = [f"make setup PARTS={environment.name}" + (" as root" if lacking else "")]
    if environment.packages and lacking:
        ways.append(f"apt-get install --no-install-recommends {' '.join(environment.packages)}")
    if environment.conda:
        ways.append(f"conda env update --file envs/{environment.name}/conda.yaml")
    return "; or ".join([*ways, "a module that puts them on PATH"])


def _rights() -> Iterator[Finding]:
    for name, capability in CAPABILITIES.items():
        problem = capability.problem()
        if problem is None:
            yield Finding(name, State.READY, capability.purpose)
            continue
        detail = f"{problem} (for: {capability.purpose})"
        if capability.optional:
            yield Finding(
                name, State.LIMITED, f"{detail}; {capability.optional}", capability.remedy
            )
        else:
            yield Finding(name, State.MISSING, detail, capability.remedy)


def _scheduler() -> Finding:
    found = [path for command in SUBMIT_COMMANDS if (path := find_command(command))]
    if not found:
        detail = "no sbatch, qsub or pjsub: cells run on virtual nodes of this machine"
        return Finding("scheduler", State.LIMITED, detail, "run on a cluster's login node")
    return Finding("scheduler", State.READY, ", ".join(found))
