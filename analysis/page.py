"""A figure's page: title above, drawing in the middle, notes below, with nothing overlapping.

Sizes are in inches, so that the height of the page follows from the notes it has to hold.
"""

import functools
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from analysis.words import Note

MARGIN, ABOUT = 0.3, 0.95  # of the page; of a note's text from its heading
TITLE_PT, SUBTITLE_PT, TEXT_PT, NOTE_PT = 14, 10, 9, 8.5
LINE, PARAGRAPH = 1.45, 0.35  # height of a line in font sizes; gap between notes in lines
DPI = 160
INK, GREY, FAINT = "#222222", "#5f5f5f", "#d9d9d9"

matplotlib.rcParams.update(
    {
        "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
        "font.size": TEXT_PT,
        "text.color": INK,
        "axes.edgecolor": GREY,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": FAINT,
        "grid.linewidth": 0.7,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "legend.frameon": False,
        "savefig.dpi": DPI,
        "svg.hashsalt": "burstlab",  # the same data give the same file
    }
)


class Page:
    """``body_height`` inches for axes between a head with the title and a foot with the notes."""

    def __init__(
        self, title: str, subtitle: str, notes: list[Note], *, width: float, body_height: float
    ) -> None:
        self.width, self.body_height = width, body_height
        head = _wrap(subtitle, SUBTITLE_PT, width - 2 * MARGIN)
        room = width - 2 * MARGIN - ABOUT
        foot = [(about, _wrap(text, NOTE_PT, room)) for about, text in notes]
        head_height = MARGIN + _height(1, TITLE_PT) + _height(len(head), SUBTITLE_PT) + 0.1
        lines = sum(len(told) + PARAGRAPH for _, told in foot)
        self.foot_height = MARGIN + _height(lines, NOTE_PT)
        self.height = head_height + body_height + self.foot_height
        self.figure = Figure(figsize=(width, self.height), facecolor="white")
        FigureCanvasAgg(self.figure)
        top = self._lines([title], self.height - MARGIN, fontsize=TITLE_PT, weight="bold")
        self._lines(head, top, fontsize=SUBTITLE_PT, color=GREY)
        top = self.foot_height
        before = ""
        for about, told in foot:
            self._lines([about] if about != before else [], top, fontsize=NOTE_PT, weight="bold")
            top = self._lines(told, top, left=MARGIN + ABOUT, fontsize=NOTE_PT, color=GREY)
            top -= _height(PARAGRAPH, NOTE_PT)
            before = about

    def axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        """Axes with their corner ``left`` from the page's edge, ``bottom`` above the notes."""
        return self.figure.add_axes(
            (
                left / self.width,
                (self.foot_height + bottom) / self.height,
                width / self.width,
                height / self.height,
            )
        )

    def text(self, left: float, bottom: float, text: str, **looks: Any) -> None:
        """A line of text placed like axes; for what belongs to no axes."""
        x, y = left / self.width, (self.foot_height + bottom) / self.height
        self.figure.text(x, y, text, **{"fontsize": TEXT_PT, **looks})

    def _lines(
        self, lines: list[str], top: float, *, fontsize: float, left: float = MARGIN, **looks: Any
    ) -> float:
        """Write lines downwards from ``top``; returns where the next one would go."""
        for line in lines:
            x, y = left / self.width, top / self.height
            self.figure.text(x, y, line, fontsize=fontsize, va="top", **looks)
            top -= _height(1, fontsize)
        return top


def _height(lines: float, size: float) -> float:
    return lines * size * LINE / 72


def text_width(text: str, size: float) -> float:
    """Width of a line of text in inches."""
    font = FontProperties(size=size)
    width = _renderer().get_text_width_height_descent(text, font, False)[0]  # type: ignore[no-untyped-call]
    return float(width / DPI)


@functools.cache
def _renderer() -> RendererAgg:
    return RendererAgg(1, 1, DPI)  # type: ignore[no-untyped-call]


def _wrap(text: str, size: float, width: float) -> list[str]:
    """Lines no wider than ``width`` inches; a word that is longer gets a line of its own."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        fits = not lines or text_width(longer, size) <= width
        lines[-1:] = [longer] if fits else [lines[-1], word]
    return lines
