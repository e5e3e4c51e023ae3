"""The figures burstlab can draw, each one function from tables to a drawing.

A module of figures is named after its paper, or after one of the paper's workloads where it has
many, and listed in PAPERS in the order of the figures.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from analysis.tables import Tables
from burstlab.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PAPERS = ("sawada", "mxnet", "terasort", "serizawa", "chainermn", "sato", "storage", "trace")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn figure and every number on it, which is written beside it as CSV."""

    canvas: "Canvas"
    data: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one paper; ``draw`` shows what is missing rather than raise."""

    paper: str
    number: str
    title: str
    draw: Callable[[Tables], Drawing]

    @property
    def name(self) -> str:
        """How configuration, rules, captions and files name it, e.g. ``sawada-1``."""
        return f"{self.paper}-{self.number}"


_FIGURES: dict[str, Figure] = {}


def figure(
    paper: str, number: int | str, *, title: str, of_traced: bool = False
) -> Callable[[Callable[[Tables], Drawing]], Callable[[Tables], Drawing]]:
    """Register a function as the figure ``number`` of ``paper``.

    It sees the cells that were traced, or those that were not, whose times are their own.
    """

    def register(draw: Callable[[Tables], Drawing]) -> Callable[[Tables], Drawing]:
        def seen(tables: Tables) -> Drawing:
            return draw(tables.traced() if of_traced else tables.timed())

        entry = Figure(paper, str(number), title, seen)
        if entry.name in _FIGURES:
            raise ValueError(f"figure {entry.name} is registered twice")
        _FIGURES[entry.name] = entry
        return draw

    return register


def figures() -> dict[str, Figure]:
    """All figures by name, in the order of papers and numbers."""
    for paper in PAPERS:
        importlib.import_module(f"analysis.{paper}")
    return dict(_FIGURES)


def find(name: str) -> Figure:
    """Raises ConfigurationError, naming the known ones, for a figure nobody registered."""
    known = figures()
    if name not in known:
        raise ConfigurationError(f"figure {name!r} is none of: {', '.join(known)}")
    return known[name]
