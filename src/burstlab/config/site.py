"""Sites: what ``config/sites/*.yaml`` may say of a cluster, and the flags it means."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
    field_validator,
    model_validator,
)

from burstlab.config.load import Document, allowed, load_yaml, wrong
from burstlab.config.matrix import text
from burstlab.errors import ConfigurationError
from burstlab.launch import LAUNCHERS
from burstlab.pfs.emulation import Emulation
from burstlab.storage import STORAGES, storage_class

SITES = Path("config/sites")
Options = dict[str, str | int | float | bool]
_FIELDS: dict[str, Any] = {
    name: (kind, Emulation._field_defaults[name])
    for name, kind in Emulation.__annotations__.items()
}
_EMULATION = create_model("Emulation", __doc__=Emulation.__doc__, **_FIELDS)


def _costs(given: Options | None) -> Options | None:
    return None if given is None else _checked(given, Emulation)


Costs = Annotated[
    dict[str, Any] | None,
    WithJsonSchema(_EMULATION.model_json_schema()),
    AfterValidator(_costs),
]


class Pfs(Document):
    """The parallel file system: where data sets come from and results go."""

    directory: str | None = Field(None, description="One that is mounted; $VARIABLES expand.")
    emulated: Costs = Field(None, description="Costs of burstlab's emulator.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "Pfs":
        if (self.directory is None) == (self.emulated is None):
            raise wrong("either `directory` or `emulated` is wanted")
        return self


class Site(Document):
    """A cluster: facts that turn into flags of `burstlab run`, and defaults for Snakemake."""

    title: str
    default_scale: str = Field(description="Scale of an experiment unless `--config scale=`.")
    scheduler: Literal["none", "slurm", "pbs", "gridengine", "nqsv", "pjm"] = Field(
        "none", description="Who gives the nodes. none: the cells run where Snakemake does."
    )
    submit: list[str] = Field(
        default=[],
        description="Words for the command that submits; $VARIABLES and {nodes} are filled in.",
    )
    submit_for: dict[str, list[str]] = Field(
        default={}, description="More such words, for cells on a storage that the scheduler gives."
    )
    poll_s: float = Field(10.0, gt=0, description="How often the scheduler is asked at most.")
    virtual_nodes: bool = Field(False, description="Nodes are directories of this machine.")
    cores_per_node: int | None = Field(None, ge=1, description="Default: all of a node's.")
    local_dir: str | None = Field(
        None,
        description="Base of node-local scratch; $VARIABLES expand in the job. "
        "Default: $TMPDIR, else /tmp.",
    )
    launch: str = Field(
        "auto",
        description="How other hosts are reached; auto: srun in a Slurm job, else ssh.",
        json_schema_extra={"enum": ["auto", "local", *LAUNCHERS]},
    )
    launch_options: list[str] = Field(default=[], description="Words for the launcher.")
    drop_caches: str = Field("", description="Command that drops the page cache of a node.")
    pfs: Pfs
    storages: dict[str, dict[str, Any]] = Field(
        default={}, description="Options of storages, where the defaults don't fit."
    )
    modules: dict[str, list[str]] = Field(
        default={}, description="Environment modules for each environment of envs/."
    )

    @field_validator("launch")
    @classmethod
    def _launcher(cls, given: str) -> str:
        if given not in (names := ["auto", "local", *LAUNCHERS]):
            raise wrong(f"there is no {given!r}{allowed(given, names)}")
        return given

    @field_validator("storages", "submit_for")
    @classmethod
    def _storage_names(cls, given: dict[str, Any]) -> dict[str, Any]:
        for name in given:
            if name not in STORAGES:
                raise wrong(f"there is no {name!r}{allowed(name, STORAGES)}", at=name)
        return given

    @field_validator("storages")
    @classmethod
    def _storage_options(cls, given: dict[str, Options]) -> dict[str, Options]:
        return {
            name: _checked(options, storage_class(name).Options, f"{name}.")
            for name, options in given.items()
        }

    def emulation_arguments(self, costs: Options | None) -> list[str]:
        """Flags for costs of an experiment's own, where the parallel file system is emulated."""
        return [] if self.pfs.emulated is None else _pairs("--pfs-option", costs or {})

    def run_arguments(self, storage: str) -> list[str]:
        """Flags for ``burstlab run`` that say where a cell on ``storage`` runs."""
        flags = ["--launch", self.launch]
        if self.local_dir is not None:
            flags += ["--local-dir", self.local_dir]
        flags += [f"--launch-option={option}" for option in self.launch_options]
        if self.virtual_nodes:
            flags += ["--virtual"]
        if self.cores_per_node is not None:
            flags += ["--cores-per-node", str(self.cores_per_node)]
        if self.drop_caches:
            flags += ["--drop-caches", self.drop_caches]
        flags += ["--pfs", self.pfs.directory or "emulated"]
        flags += _pairs("--pfs-option", self.pfs.emulated or {})
        return flags + _pairs("-o", self.storages.get(storage, {}))

    def conditions(self, storage: str) -> str:
        """What the numbers depend on at this site: a change makes records outdated.

        Neither launcher nor directories are part of it: they move without changing a number.
        """
        emulated, options = self.pfs.emulated or {}, self.storages.get(storage, {})
        told = {"cores": self.cores_per_node or "all", "pfs": emulated, "options": options}
        return json.dumps(told, sort_keys=True)


def load_site(name: str, root: Path = Path()) -> Site:
    """``config/sites/NAME.yaml``. Raises ConfigurationError naming the sites there are."""
    sites = sorted(path.stem for path in (root / SITES).glob("*.yaml"))
    if name not in sites:
        raise ConfigurationError(f"there is no site {name!r}{allowed(name, sites)} in {SITES}")
    return load_yaml(root / SITES / f"{name}.yaml", Site)


def run_arguments(name: str, words: Sequence[str]) -> list[str]:
    """What ``burstlab run --site NAME`` stands for; ``words`` tell the storage."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--storage", default="")
    return load_site(name).run_arguments(parser.parse_known_args(words)[0].storage)


def _checked(given: Options, options: type[Any], at: str = "") -> Options:
    """``given`` if it fits the fields of an options class; only what is given is kept."""
    kinds: dict[str, Any] = options.__annotations__
    for name, value in given.items():
        if name not in kinds:
            raise wrong(f"no such option{allowed(name, kinds)}", at=f"{at}{name}")
        try:
            TypeAdapter(kinds[name]).validate_python(value, strict=True)
        except ValidationError:
            wanted = " or ".join(get_args(kinds[name])) or kinds[name].__name__
            raise wrong(f"{value!r}: {wanted} is wanted", at=f"{at}{name}") from None
    return given


def _pairs(flag: str, options: Options) -> list[str]:
    return [word for name, value in options.items() for word in (flag, f"{name}={text(value)}")]
