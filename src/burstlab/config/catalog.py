"""What a checkout has for experiments to name: storages, workloads, data sets, figures."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from burstlab.dataset.model import DATASETS, load_datasets
from burstlab.storage import STORAGES


@dataclass(frozen=True, slots=True)
class Catalog:
    """The names there are, each kind in its own order."""

    storages: tuple[str, ...]
    workloads: tuple[str, ...]
    datasets: tuple[str, ...]
    figures: tuple[str, ...]


def survey(root: Path) -> Catalog:
    """The catalog of the checkout at ``root``. Raises ConfigurationError."""
    programs = {path.parent.name for path in (root / "workflows").glob("*/run")}
    return Catalog(
        storages=tuple(STORAGES),
        workloads=tuple(sorted(programs)),
        datasets=tuple(load_datasets(root / DATASETS)),
        figures=tuple(
            name for path in sorted((root / "analysis").glob("*.py")) for name in _figures(path)
        ),
    )


def _figures(path: Path) -> Iterator[str]:
    """Names registered in a module of figures: ``@figure("sawada", 1, ...)`` is sawada-1.

    Read, not imported: importing one takes 2 s of CPU, which every start of Snakemake would pay.
    """
    source = path.read_text(encoding="utf-8")
    if "@figure(" not in source:
        return
    for function in ast.parse(source).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "figure":
                yield "-".join(str(ast.literal_eval(word)) for word in decorator.args[:2])
