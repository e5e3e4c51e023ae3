"""The tables every figure is drawn from: one row per cell, span, metric, operation; and of traces.

A row is tied to its cell by ``record``, the path of the cell's record file. The columns are
described in docs/records.md.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import polars as pl

TEXTS = pl.List(pl.String())
CELLS = pl.Schema(
    {
        "record": pl.String(),
        "cell": pl.String(),
        "status": pl.String(),
        "reason": pl.String(),
        "exit_status": pl.Int64(),
        "experiment": pl.String(),
        "scale": pl.String(),
        "workload": pl.String(),
        "storage": pl.String(),
        "staging": pl.String(),
        "dataset": pl.String(),
        "nodes": pl.Int64(),
        "parameters": pl.String(),
        "repeat": pl.Int64(),
        "started": pl.String(),
        "storage_emulated": pl.Boolean(),
        "pfs_emulated": pl.Boolean(),
        "pfs": TEXTS,
        "dataset_source": pl.String(),
        "dataset_files": pl.Int64(),
        "dataset_bytes": pl.Int64(),
        "staging_method": pl.String(),
        "cache_state": pl.String(),
        "cache_method": pl.String(),
        "hosts": TEXTS,
        "allocation": pl.String(),
        "hostname": pl.String(),
        "cores": pl.Int64(),
        "memory_bytes": pl.Int64(),
        "cpu_model": pl.String(),
        "kernel": pl.String(),
        "load_before": pl.Float64(),
        "load_after": pl.Float64(),
        "burstlab": pl.String(),
        "git_sha": pl.String(),
        "git_dirty": pl.Boolean(),
        "traced": pl.Boolean(),
        "workload_facts": TEXTS,
        "issues": TEXTS,
    }
)
SPANS = pl.Schema(
    {"record": pl.String(), "name": pl.String(), "start_s": pl.Float64(), "elapsed_s": pl.Float64()}
)
METRICS = pl.Schema(
    {
        "record": pl.String(),
        "name": pl.String(),
        "value": pl.Float64(),
        "unit": pl.String(),
        "better": pl.String(),
    }
)
OPERATIONS = pl.Schema(
    {
        "record": pl.String(),
        "operation": pl.String(),
        "start_s": pl.Float64(),
        "elapsed_s": pl.Float64(),
        "host": pl.String(),
        "status": pl.Int64(),
        "read_bytes": pl.Int64(),
        "written_bytes": pl.Int64(),
        "rank": pl.Int64(),
        "epoch": pl.Int64(),
        "accuracy": pl.Float64(),
        "images": pl.Int64(),
    }
)
# Of operations: null where the workload does not tell them.
OF_SOME = ("read_bytes", "written_bytes", "rank", "epoch", "accuracy", "images")
TRANSFERS = pl.Schema(
    {
        "record": pl.String(),
        "host": pl.String(),
        "process": pl.Int64(),
        "program": pl.String(),
        "place": pl.String(),
        "path": pl.String(),
        "reads": pl.Int64(),
        "read_bytes": pl.Int64(),
        "writes": pl.Int64(),
        "written_bytes": pl.Int64(),
    }
)
REQUESTS = pl.Schema(
    {
        "record": pl.String(),
        "host": pl.String(),
        "program": pl.String(),
        "place": pl.String(),
        "direction": pl.String(),
        "size_bytes": pl.Int64(),
        "calls": pl.Int64(),
    }
)


@dataclass(frozen=True, slots=True)
class Tables:
    """All that figures may know; each table has the columns of its schema above."""

    cells: pl.DataFrame
    spans: pl.DataFrame
    metrics: pl.DataFrame
    operations: pl.DataFrame
    transfers: pl.DataFrame  # of traced cells: what each process read and wrote of each file
    requests: pl.DataFrame  # of traced cells: how many calls moved how many bytes

    def where(self, condition: pl.Expr) -> Self:
        """Only the cells for which ``condition`` holds, and what belongs to them."""
        return self._with_cells(self.cells.filter(condition))

    def ok(self) -> Self:
        """Only the cells that ran to a good end."""
        return self.where(pl.col("status") == "ok")

    def timed(self) -> Self:
        """Without the cells whose workload was traced: tracing takes time."""
        return self.where(~pl.col("traced"))

    def traced(self) -> Self:
        """The others."""
        return self.where(pl.col("traced"))

    def _with_cells(self, cells: pl.DataFrame) -> Self:
        def kept(table: pl.DataFrame) -> pl.DataFrame:
            return table.join(cells, on="record", how="semi", maintain_order="left")

        others = (field.name for field in fields(self) if field.name != "cells")
        return type(self)(cells, *(kept(getattr(self, name)) for name in others))

    def write(self, directory: Path) -> None:
        """One Parquet file per table."""
        directory.mkdir(parents=True, exist_ok=True)
        for field in fields(self):
            getattr(self, field.name).write_parquet(directory / f"{field.name}.parquet")

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The tables that ``write`` left in ``directory``."""
        return cls(*(pl.read_parquet(directory / f"{f.name}.parquet") for f in fields(cls)))
