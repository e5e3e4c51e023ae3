"""Experiments: what ``config/experiments/*.yaml`` may say, and the cells it means."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from burstlab.config.catalog import Catalog
from burstlab.config.load import Document, allowed, load_yaml, wrong
from burstlab.config.matrix import Point, Value, expand, text
from burstlab.config.site import Costs
from burstlab.dataset.make import manifest_path
from burstlab.errors import ConfigurationError
from burstlab.record import LABELS
from burstlab.request import PATTERN_WANTED, STAGINGS, is_below

EXPERIMENTS = Path("config/experiments")
PLACE = ("storage", "staging", "nodes")  # dimensions that every cell has, in their path order
TEARDOWN_S = 60  # the scheduler ends a job this much later than the cell ends itself
LONGEST_NAME = 255  # bytes in one name, NAME_MAX of every file system we know
_WORD = re.compile(r"-?[A-Za-z0-9][A-Za-z0-9._+-]*")  # in a path, a label and a shell alike
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _scalar(value: Any) -> Value:
    if not isinstance(value, str | int | float | bool):
        raise wrong(f"{value!r}: a word, a number, true or false is wanted")
    if not _WORD.fullmatch(text(value)):
        raise wrong(f"{value!r}: letters, digits and . _ + - are allowed, for it names a directory")
    return value


Scalar = Annotated[
    Any,
    PlainValidator(_scalar),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]


def _values(value: Any) -> Any:
    return [_scalar(one) for one in (value if isinstance(value, list) else [value])]


Values = Annotated[
    Any,
    PlainValidator(_values),
    WithJsonSchema(
        {"type": ["string", "number", "boolean", "array"], "items": {"type": ["string", "number"]}}
    ),
]


class Block(Document):
    """One workload on one data set at every point of a matrix.

    The dimensions `storage`, `staging` and `nodes` say where a cell runs; any other is a
    parameter of the workload, which gets it as an environment variable (WORKLOAD_NAME).
    """

    workload: str = Field(description="A directory of workflows/ that has a rule in rules/.")
    dataset: str | None = Field(None, description="A data set of config/datasets.yaml.")
    needs: list[Literal["shared", "mmap"]] = Field(
        default=[], description="Of the storage: one name space for all nodes, shared mmap."
    )
    cache: Literal["cold", "warm", "as-is"] = Field(
        "cold", description="State of the page cache before the workload starts."
    )
    stage_out: list[str] = Field(
        default=[],
        description="Results to copy to the parallel file system: patterns below $BURSTLAB_MOUNT.",
    )
    emulated_pfs: Costs = Field(
        None, description="Costs of the parallel file system where the site's is emulated."
    )
    runtime_min: int = Field(ge=2, description="The most a cell may take, in minutes.")
    repeats: int | None = Field(
        None, ge=1, description="How often each point is run, where not as often as the scale says."
    )
    product: dict[str, list[Scalar]] = Field(
        default={}, description="Dimensions, each with its values: all combinations are run."
    )
    zip: list[dict[str, list[Scalar]]] = Field(
        default=[], description="Groups of dimensions that advance together, value by value."
    )
    exclude: list[dict[str, Values]] = Field(
        default=[], description="Points to leave out: those with all of these values."
    )
    _points: list[Point] = PrivateAttr()

    @field_validator("stage_out")
    @classmethod
    def _below(cls, patterns: list[str]) -> list[str]:
        for number, pattern in enumerate(patterns):
            if not is_below(pattern):
                raise wrong(f"{pattern!r}: {PATTERN_WANTED}", at=str(number))
        return patterns

    @model_validator(mode="after")
    def _expanded(self, info: ValidationInfo) -> "Block":
        for dimensions in (self.product, *self.zip):
            for name in dimensions:
                _check_dimension(name)
        self._points = expand(self.product, self.zip, self.exclude)
        for point in self._points:
            _check_place(point)
        if isinstance(info.context, Catalog):
            self._check_names(info.context)
        return self

    def _check_names(self, catalog: Catalog) -> None:
        _check_exists("workload", self.workload, catalog.workloads)
        if self.dataset is not None:
            _check_exists("dataset", self.dataset, catalog.datasets)
        for storage in dict.fromkeys(str(point["storage"]) for point in self._points):
            _check_exists("storage", storage, catalog.storages)

    @property
    def points(self) -> list[Point]:
        """The points of the matrix, without repeats."""
        return self._points

    @property
    def parameters(self) -> list[str]:
        """The dimensions that belong to the workload."""
        return [name for name in self._points[0] if name not in PLACE]


class Scale(Document):
    """One size of the experiment."""

    repeats: int = Field(ge=1, description="How often each point is run.")
    figures: list[str] | None = Field(
        None, description="Those it feeds, where these are not all of the experiment's."
    )
    blocks: list[Block] = Field(min_length=1)

    @model_validator(mode="after")
    def _no_two_with_one_name(self) -> "Scale":
        seen: dict[str, int] = {}
        for number, block in enumerate(self.blocks):
            for point in block.points:
                name = point_name(block.workload, point)
                if name in seen:
                    raise wrong(
                        f"two cells have the name {name!r}, the other one in blocks.{seen[name]}",
                        at=f"blocks.{number}",
                    )
                if len(name.rsplit("/", 1)[1]) > LONGEST_NAME:
                    raise wrong(f"{name!r}: too long for a directory", at=f"blocks.{number}")
                seen[name] = number
        return self


class Experiment(Document):
    """A matrix at several scales, and the figures it feeds."""

    title: str
    paper: str = Field("", description="The publication whose figures it draws.")
    figures: list[str] = Field(default=[], description="As `python -m analysis list` names them.")
    part_of_demo: bool = Field(False, description="Its demo scale belongs to `snakemake demo`.")
    scales: dict[str, Scale] = Field(min_length=1, description="`demo`, `paper`, ...")

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> "Experiment":
        for name in self.scales:
            if not _NAME.fullmatch(name):
                raise wrong(
                    "a scale's name is lower-case letters, digits and _", at=f"scales.{name}"
                )
        if self.part_of_demo and "demo" not in self.scales:
            raise wrong("there is no scale `demo` to be part of it", at="part_of_demo")
        if isinstance(info.context, Catalog):
            for number, figure in enumerate(self.figures):
                _check_exists(f"figures.{number}", figure, info.context.figures)
        for name, scale in self.scales.items():
            for number, figure in enumerate(scale.figures or []):
                _check_exists(f"scales.{name}.figures.{number}", figure, tuple(self.figures))
        return self

    def figures_at(self, scale: str) -> list[str]:
        """What one scale feeds."""
        own = self.scales[scale].figures
        return self.figures if own is None else own

    def cells(self, name: str, scale: str) -> Iterator["PlannedCell"]:
        """The cells of one scale; ``name`` is the experiment's own. Repeats vary slowest."""
        chosen = self.scales[scale]
        planned = [
            (point_name(block.workload, point), block, point, block.repeats or chosen.repeats)
            for block in chosen.blocks
            for point in block.points
        ]
        for repeat in range(1, max(repeats for *_, repeats in planned) + 1):
            for where, block, point, repeats in planned:
                if repeat <= repeats:
                    yield PlannedCell(f"{name}/{scale}/{where}/r{repeat}", block, point)


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One point of an experiment, once: what is to be run."""

    name: str  # experiment/scale/workload/storage-staging/nN/parameters/rN
    block: Block
    point: Point

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.point["nodes"])

    @property
    def storage(self) -> str:
        """Name of the storage."""
        return str(self.point["storage"])

    def run_arguments(self) -> list[str]:
        """Flags for ``burstlab run`` that say what is measured; the site says where."""
        block, point = self.block, self.point
        experiment, scale, workload, *_, repeat = self.name.split("/")
        labels = {"experiment": experiment, "scale": scale, "workload": workload}
        labels |= {"repeat": repeat[1:]}
        flags = ["--storage", self.storage, "--staging", str(point["staging"])]
        flags += ["--nodes", str(point["nodes"]), "--cache", block.cache]
        if block.needs:
            flags += ["--needs", ",".join(block.needs)]
        if block.dataset is not None:
            flags += ["--dataset", str(manifest_path(block.dataset))]
            labels |= {"dataset": block.dataset}
        for pattern in block.stage_out:
            flags += ["--stage-out", pattern]
        flags += ["--time-limit", str(60 * block.runtime_min - TEARDOWN_S)]
        flags += ["--cell-dir", f"results/{self.name}"]
        labels |= {name: text(value) for name, value in point.items() if name not in PLACE}
        return flags + [word for pair in labels.items() for word in ("--label", "=".join(pair))]

    def conditions(self) -> str:
        """What the numbers depend on and the path does not tell: a change makes them outdated."""
        block = self.block
        told = f"dataset={block.dataset} needs={','.join(block.needs)} cache={block.cache}"
        if block.stage_out:
            told += f" stage_out={','.join(block.stage_out)}"
        return f"{told} emulated_pfs={block.emulated_pfs}" if block.emulated_pfs else told


def load_experiment(name: str, root: Path = Path(), catalog: Catalog | None = None) -> Experiment:
    """``config/experiments/NAME.yaml``. Raises ConfigurationError.

    With a catalog, everything that the experiment names must be in it.
    """
    return load_yaml(root / EXPERIMENTS / f"{name}.yaml", Experiment, catalog)


def chosen(experiments: Mapping[str, Experiment], name: str, scale: str) -> Experiment:
    """The one of this name. Raises ConfigurationError where it, or its scale, does not exist."""
    if name not in experiments:
        raise ConfigurationError(f"there is no experiment {name!r}{allowed(name, experiments)}")
    scales = experiments[name].scales
    if scale not in scales:
        raise ConfigurationError(
            f"{EXPERIMENTS}/{name}.yaml has no scale {scale!r}{allowed(scale, scales)}: "
            "give --config scale="
        )
    return experiments[name]


def point_name(workload: str, point: Point) -> str:
    """A point's place below an experiment's scale; equal points have equal names.

    Without a comma: Snakemake 9.27 quotes a wildcard that has one for the job that it submits, and
    takes the job's command line apart at every comma all the same.
    """
    parameters = "+".join(f"{n}={text(v)}" for n, v in sorted(point.items()) if n not in PLACE)
    where = f"{point['storage']}-{point['staging']}/n{point['nodes']}"
    return f"{workload}/{where}/{parameters or 'default'}"


def _check_dimension(name: str) -> None:
    if name in Block.model_fields or name in LABELS:
        raise wrong("no dimension can have this name: it has a meaning of its own", at=name)
    if not _NAME.fullmatch(name):
        raise wrong("a dimension's name is lower-case letters, digits and _", at=name)


def _check_place(point: Point) -> None:
    for name in PLACE:
        if name not in point:
            raise wrong(f"this dimension is missing (there are: {', '.join(point)})", at=name)
    nodes = point["nodes"]
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
        raise wrong(f"{nodes!r}: a whole number from 1 is wanted", at="nodes")
    _check_exists("staging", str(point["staging"]), STAGINGS)


def _check_exists(key: str, name: str, existing: tuple[str, ...]) -> None:
    if name not in existing:
        raise wrong(f"there is no {name!r}{allowed(name, existing)}", at=key)
