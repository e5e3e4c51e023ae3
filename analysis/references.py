"""What the papers print, beside what we measure (analysis/reference/<paper>.csv)."""

from pathlib import Path

import polars as pl

from analysis.words import Note

DIRECTORY = Path(__file__).parent / "reference"


def reference(paper: str, figure: int | str) -> pl.DataFrame:
    """Rows of one figure: figure, metric, unit, conditions, value, source; value as printed."""
    table = pl.read_csv(DIRECTORY / f"{paper}.csv", infer_schema=False)
    return table.filter(pl.col("figure") == str(figure))


def printed(paper: str, figure: int | str) -> list[Note]:
    """The paper's own results for a figure, one note per row."""
    return [
        Note("Paper", f"{row['conditions']}: {row['value']} ({row['source']}).")
        for row in reference(paper, figure).iter_rows(named=True)
    ]
