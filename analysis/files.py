"""Drawings and tables into files; each is complete or absent."""

from pathlib import Path

from analysis.phases import as_html, phases
from analysis.registry import Drawing, Figure
from analysis.summary import summary
from analysis.tables import Tables


def draw(figure: Figure, tables: Tables, stem: Path) -> list[Path]:
    """Draw one figure into ``stem``.svg, .png and .csv; returns these paths."""
    drawing = figure.draw(tables)
    stem.parent.mkdir(parents=True, exist_ok=True)
    return [_save(drawing, stem, suffix) for suffix in ("svg", "png", "csv")]


def tell(tables: Tables, directory: Path) -> list[Path]:
    """Write the timing table (phases.csv and .html) and what was measured (summary.rst)."""
    directory.mkdir(parents=True, exist_ok=True)
    timed = tables.timed()
    table = phases(timed)
    texts = {
        "phases.csv": table.write_csv(),
        "phases.html": as_html(table, timed),
        "summary.rst": summary(tables),
    }
    paths = [directory / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(text)
        partial.rename(path)
    return paths


def _save(drawing: Drawing, stem: Path, suffix: str) -> Path:
    path = stem.with_name(f"{stem.name}.{suffix}")
    partial = path.with_name(f".{path.name}.partial")
    if suffix == "csv":
        drawing.data.write_csv(partial)
    else:
        # no date in the file: the same records give the same bytes
        undated = {"Date": None} if suffix == "svg" else {}
        drawing.canvas.savefig(partial, format=suffix, metadata=undated)
    partial.rename(path)
    return path
