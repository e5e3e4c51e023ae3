"""All experiments of a checkout on one site: what the Snakemake rules ask for, answered."""

import hashlib
import inspect
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from burstlab.config.catalog import survey
from burstlab.config.datasets import DataSets
from burstlab.config.experiment import (
    EXPERIMENTS,
    Experiment,
    PlannedCell,
    chosen,
    load_experiment,
)
from burstlab.config.load import allowed
from burstlab.config.site import SITES, load_site
from burstlab.doctor.environments import of_workload
from burstlab.errors import BurstlabError, ConfigurationError

Answer = TypeVar("Answer")
SETTINGS = ("site", "scale")
SITE = "site"  # in results/EXPERIMENT/SCALE: which one its records are of
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
OWN = {  # what else lies in results/
    "datasets": "data sets",
    "environments": "versions of programs",
    "figures": "figures",
    "lab": "make lab-demo",
    "logs": "logs",
    "run": "cells that were run by hand",
    "tables": "tables",
    "report.html": "the report",
}


class Wildcards(Protocol):
    """Of a rule that makes records."""

    cell: str


class DatasetWildcards(Protocol):
    """Of the rule that makes data sets."""

    dataset: str


class TablesWildcards(Protocol):
    """Of the rule that reads the records of an experiment."""

    experiment: str
    scale: str


class Campaign:
    """Attributes that are functions of ``wildcards`` go into the rules as they are."""

    def __init__(self, root: Path, settings: Mapping[str, Any]) -> None:
        """Read everything under ``root``/config; ``settings`` is Snakemake's ``config``.

        Raises ConfigurationError for whatever is wrong with any of it.
        """
        for key in settings:
            if key not in SETTINGS:
                raise ConfigurationError(f"--config {key}=: unknown key{allowed(key, SETTINGS)}")
        if "site" not in settings:
            sites = ", ".join(sorted(path.stem for path in (root / SITES).glob("*.yaml")))
            raise ConfigurationError(f"no site: give --profile NAME or --config site= ({sites})")
        self.site_name = str(settings["site"])
        self.site = load_site(self.site_name, root)
        self._datasets = DataSets(root)
        catalog = survey(root)
        names = sorted(path.stem for path in (root / EXPERIMENTS).glob("*.yaml"))
        for name in names:
            _check_name(name, root)
        self.experiments = {name: load_experiment(name, root, catalog) for name in names}
        self.scale = str(settings.get("scale", self.site.default_scale))
        self._check_scale("scale" in settings)
        self._cells = {
            cell.name: cell
            for name, experiment in self.experiments.items()
            for scale in experiment.scales
            for cell in experiment.cells(name, scale)
        }
        self._workloads = catalog.workloads
        self.environment = partial(of_workload, root)
        self._site_flags = {
            name: shlex.join(self.site.run_arguments(name)) for name in catalog.storages
        }
        # environments that every site can check and make: what they hold, and where conda finds it
        self.environments = [
            path.parent.name
            for path in sorted((root / "envs").glob("*/commands.txt"))
            if path.with_name("conda.yaml").exists()
        ]
        self._site_conditions = {name: self.site.conditions(name) for name in catalog.storages}
        self._exists = cache(os.path.exists)  # thousands of cells ask for few paths
        self._asked: set[str] = set()  # cells of this run
        self.run = _answering(self._run)
        self.program = _answering(self._program)
        self.conditions = _answering(self._conditions)
        self.definition = _answering(self._definition)
        # what a cell's job asks of the scheduler: Snakemake's own names and units (minutes)
        self.resources = {"nodes": _answering(self._nodes), "runtime": _answering(self._runtime)}

    # --- targets ---

    def targets(self, experiment: str, scale: str | None = None) -> list[str]:
        """Records and figures of an experiment at ``scale`` (default: the one asked for).

        The figures alone would do, but then Snakemake never missed a record that was deleted.
        """
        scale = scale or self.scale
        return [*self.records(experiment, scale), *self.figures(experiment, scale)]

    def demo(self) -> list[str]:
        """Records and figures of all that belongs to the demo."""
        members = [name for name, one in self.experiments.items() if one.part_of_demo]
        return [path for name in members for path in self.targets(name, "demo")]

    def records(self, experiment: str, scale: str) -> list[str]:
        """Paths of all records of an experiment at one scale. Raises ConfigurationError."""
        cells = self._at(experiment, scale).cells(experiment, scale)
        return [f"results/{cell.name}/record.json" for cell in cells]

    def figures(self, experiment: str, scale: str) -> list[str]:
        """Paths of the drawings of an experiment at one scale, and of its table of phases."""
        figures = self._at(experiment, scale).figures_at(scale)
        names = ["phases.html", *(f"{name}.svg" for name in figures)]
        return [f"results/figures/{experiment}/{scale}/{name}" for name in names]

    def check_targets(self, rules: Iterable[str]) -> None:
        """Raises ConfigurationError when an experiment can't be a target beside ``rules``."""
        for name in sorted(set(rules) & set(self.experiments)):
            raise ConfigurationError(
                f"{EXPERIMENTS}/{name}.yaml: a rule has that name: choose another"
            )

    def _at(self, experiment: str, scale: str) -> Experiment:
        found = chosen(self.experiments, experiment, scale)
        self._check_site(Path("results", experiment, scale))
        return found

    def _check_site(self, results: Path) -> None:
        """Raises ConfigurationError when another site's records lie there."""
        try:
            other = (results / SITE).read_text().strip()
        except FileNotFoundError:
            return
        if other != self.site_name:
            raise ConfigurationError(
                f"{results} holds what was measured on site {other}, and this is site "
                f"{self.site_name}: move it away (mv {results} {results}-{other}) or measure in "
                "another checkout"
            )

    # --- parts of rules ---

    def workloads(self, rules: Iterable[str]) -> list[str]:
        """The workloads that have no rule of their own among ``rules``."""
        return [name for name in self._workloads if name not in set(rules)]

    @staticmethod
    def record(workload: str) -> str:
        """Pattern of the records of a workload; its wildcard is the cell's name."""
        return f"results/{{cell,[^/]+/[^/]+/{workload}/.+}}/record.json"

    def prepared(self, workload: str) -> Callable[[Wildcards], list[str]]:
        """Function of the wildcards: what must be made before a cell of ``workload`` starts.

        These are the list of its environment's programs, once and for all, and the manifest of its
        data set. Both are `ancient`: made again, they are no reason to run a cell again, unless the
        data set is going to hold other files. To Snakemake, a cell is outdated, too, when one of
        them is missing and gets made for another cell: so one that has its record does not ask.
        """
        from snakemake.io import ancient

        own = self.environment(workload)
        versions = f"results/environments/{own}.json"
        checked = own not in self.environments or Path(versions).exists()

        @cache
        def wanted(dataset: str | None) -> tuple[list[str], list[str]]:
            """All that cells on ``dataset`` want, and what of it is there; thousands ask."""
            paths = [] if checked else [ancient(versions)]
            if dataset is not None:
                manifest = self._datasets.manifest(dataset)
                replaced = in_one_line(self._datasets.is_replaced, dataset)
                paths.append(manifest if replaced else ancient(manifest))
            return paths, [path for path in paths if Path(path).exists()]

        def paths(wildcards: Wildcards) -> list[str]:
            self._asked.add(wildcards.cell)
            all_paths, there = wanted(self._cell(wildcards).block.dataset)
            if len(there) < len(all_paths) and _has_record(wildcards.cell):
                return there
            return all_paths

        return _answering(paths)

    def modules(self, name: str) -> list[str]:
        """Environment modules that the site has for a workload, or for an environment of envs/."""
        return self.site.modules.get(self.environment(name), [])

    def cells(self, wildcards: TablesWildcards) -> str:
        """Which cells an experiment has, in few letters: tables of others are outdated."""
        names = "\n".join(self.records(wildcards.experiment, wildcards.scale))
        return hashlib.sha256(names.encode()).hexdigest()[:12]

    def _run(self, wildcards: Wildcards, output: object) -> str:
        """Flags for ``burstlab run``, quoted.

        Snakemake does not compare parameters that depend on ``output`` with those of an earlier
        run: time limits and directories may change without making a record outdated.
        """
        cell = self._cell(wildcards)
        flags = [*self.site.emulation_arguments(cell.block.emulated_pfs), *cell.run_arguments()]
        return f"{self._site_flags[cell.storage]} {' '.join(map(_quoted, flags))}"

    def _program(self, wildcards: Wildcards, output: object) -> str:
        """The last words of ``burstlab run``: what judges the workload's result, its program."""
        directory = f"workflows/{self._cell(wildcards).block.workload}"
        words = ["--", f"{directory}/run"]
        if self._exists(f"{directory}/check"):
            words = ["--check", f"{directory}/check", *words]
        return shlex.join(words)

    def _conditions(self, wildcards: Wildcards) -> str:
        """What the numbers depend on beyond the path; when it changes, the cell runs again."""
        cell = self._cell(wildcards)
        told = [f"site={self.site_name}", cell.conditions(), self._site_conditions[cell.storage]]
        if cell.block.dataset is not None:
            content = in_one_line(self._datasets.content, cell.block.dataset)
            told.append(content or _recorded_content(wildcards.cell))
        return " ".join(told)

    def _definition(self, wildcards: DatasetWildcards) -> str:
        """What a data set is made from; when it changes, the data set is made again."""
        return self._datasets.definition(wildcards.dataset)

    def _nodes(self, wildcards: Wildcards) -> int:
        return self._cell(wildcards).nodes

    def _runtime(self, wildcards: Wildcards) -> int:
        return self._cell(wildcards).block.runtime_min

    def _cell(self, wildcards: Wildcards) -> PlannedCell:
        try:
            return self._cells[wildcards.cell]
        except KeyError:
            experiment = wildcards.cell.split("/")[0]
            raise ConfigurationError(
                f"{EXPERIMENTS}/{experiment}.yaml has no cell {wildcards.cell!r}"
            ) from None

    # --- before the first job ---

    def check_start(self, *, local: bool) -> None:
        """Raises ConfigurationError when no job may be started; ``local``: they would run here."""
        if local and self.site.scheduler != "none":
            raise ConfigurationError(
                f"site {self.site_name}: the profile has no executor, so jobs would run on this "
                f"login node and not through {self.site.scheduler}"
            )
        for problem in self._datasets.damaged():
            raise ConfigurationError(problem)
        for results in self._places():
            self._check_site(results)
            results.mkdir(parents=True, exist_ok=True)
            (results / SITE).write_text(f"{self.site_name}\n")

    def _places(self) -> list[Path]:
        """Directories of the experiments and scales of this run."""
        return sorted({Path("results", *cell.split("/")[:2]) for cell in self._asked})

    def tell_failures(self) -> None:
        """What to do about the cells of this run that failed."""
        for results in self._places():
            experiment, scale = results.parts[-2:]
            own = [cell for cell in self._asked if cell.startswith(f"{experiment}/{scale}/")]
            failed = sum(Path("results", cell, "failed.json").exists() for cell in own)
            if failed:
                print(
                    f"burstlab: {failed} cells of {experiment} failed. Why: grep -r --include "
                    f"failed.json '\"reason\"' {results}\nburstlab: figures of what there is: "
                    f"python -m analysis draw {experiment} --scale {scale}",
                    file=sys.stderr,
                )

    def _check_scale(self, asked_for: bool) -> None:
        scales = sorted({scale for one in self.experiments.values() for scale in one.scales})
        if asked_for and self.scale not in scales:
            raise ConfigurationError(
                f"--config scale={self.scale}: there is no such scale{allowed(self.scale, scales)}"
            )


def in_one_line(function: Callable[..., Answer], *arguments: Any, **named: Any) -> Answer:
    """What ``function`` returns; its BurstlabError ends Snakemake with one line, no traceback."""
    try:
        return function(*arguments, **named)
    except BurstlabError as error:
        sys.exit(f"burstlab: {error}")


def _recorded_content(cell: str) -> str:
    """What a cell was measured with, where the manifest was deleted to free space."""
    try:
        record = json.loads(Path(f"results/{cell}/record.json").read_bytes())
        return f"given {record['dataset']['manifest_sha256']}"
    except (OSError, ValueError, KeyError):
        return "given, not looked at yet"


def _check_name(experiment: str, root: Path) -> None:
    """Raises ConfigurationError when results or targets of that name are something else."""
    where = f"{EXPERIMENTS / experiment}.yaml"
    if not NAME.fullmatch(experiment):
        raise ConfigurationError(f"{where}: its name may have letters, digits and . _ + - only")
    if experiment in OWN:
        raise ConfigurationError(
            f"{where}: results/{experiment} is for {OWN[experiment]}: rename it"
        )
    if (root / experiment).exists():
        raise ConfigurationError(
            f"{where}: {experiment} is a file or directory of the checkout, and would be the "
            "target: rename it"
        )


_quoted = cache(shlex.quote)  # most words are those of all cells


def _has_record(cell: str) -> bool:
    return os.path.exists(f"results/{cell}/record.json")  # noqa: PTH110 - asked for every cell


def _answering(method: Callable[..., Any]) -> partial[Any]:
    """``method`` with its signature at hand.

    Snakemake asks for the signature of every function of a rule several times per job, and
    computing it took a tenth of a dry run of 10,000 cells.
    """
    function = partial(method)
    function.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return function
