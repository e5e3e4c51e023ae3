"""Serizawa and Tatebe: I/O for large machine-learning training. Minibatches, and staging."""

import re

import polars as pl

from analysis.pipelines import MODES, against_minibatches, against_number, table
from analysis.references import printed, reference
from analysis.registry import Drawing, figure
from analysis.series import OTHER, labelled, look, medians, metric, parameter
from analysis.tables import Tables
from analysis.words import Note, absent, conditions, interval, issues, seconds

PREFETCH, STAGING = pl.col("workload") == "prefetch", pl.col("workload") == "staging"
DEFAULTS = {"mode": "lazy", "minibatches": "1000", "batch": "32", "generation": "2", "copiers": "2"}
COST = re.compile(r"(metadata|io)_latency_ms |bandwidth_mb_s ")
GENERATION, COPIERS = 2, 2  # of figures 5 and 6 and table 2; of all but figure 6


@figure("serizawa", 4, title="Minibatches: time to load them against generation processes")
def generation(tables: Tables) -> Drawing:
    """Time until all minibatches are loaded [s] against decode workers, one line per pipeline."""
    return _against(
        _prefetch(tables, pl.col("copiers") == COPIERS),
        "generation",
        "processes of the minibatch-generation stage (lazy: threads)",
        title="Minibatches: time to load them against generation processes",
        fixed=f"paper3 has {COPIERS} prefetch processes",
        paper=printed("serizawa", 4),
    )


@figure("serizawa", 5, title="Minibatches: elapsed time against minibatches loaded")
def progress(tables: Tables) -> Drawing:
    """Elapsed time [s] against minibatches loaded, with 2 generation processes."""
    chosen = _prefetch(tables, _standard())
    rows = chosen.operations.filter(pl.col("operation") == "minibatch").sort("record", "start_s")
    loaded = rows.select(
        "record",
        pl.col("elapsed_s").cum_sum().over("record"),
        pl.int_range(1, pl.len() + 1).over("record").alias("minibatch"),
    ).join(_with_parameters(chosen).select("record", "mode"), on="record")
    page, data = against_minibatches(
        loaded,
        title="Minibatches: elapsed time against minibatches loaded",
        subtitle=f"{_what(chosen)}; {GENERATION} generation processes. The line is the median.",
        measure="elapsed time [s]",
        notes=[*_crossing(loaded), *_notes(chosen), *printed("serizawa", 5)],
    )
    return Drawing(page.figure, data)


@figure("serizawa", 6, title="Minibatches: time of paper3 against its prefetch processes")
def prefetch_processes(tables: Tables) -> Drawing:
    """Time until all minibatches are loaded [s] against the copy processes of paper3."""
    return _against(
        _prefetch(tables, (pl.col("mode") == "paper3") & (pl.col("generation") == GENERATION)),
        "copiers",
        "processes of the prefetch stage",
        title="Minibatches: time of paper3 against its prefetch processes",
        fixed=f"{GENERATION} generation processes",
        paper=printed("serizawa", 6),
    )


@figure("serizawa", "table-2", title="Minibatches: the first one and all of them")
def first_minibatch(tables: Tables) -> Drawing:
    """Time of the first minibatch [s], its share, and the total, beside the paper's."""
    chosen = _prefetch(tables, _standard())
    first = _medians(chosen, "first_minibatch_time").rename({"median": "first_s"})
    total = _medians(chosen, "minibatches_time").rename({"median": "total_s"})
    theirs = _paper_table_2()
    data = (
        pl.DataFrame({"mode": list(MODES)})
        .join(first, on="mode", how="left", maintain_order="left")
        .join(total.select("mode", "total_s"), on="mode", how="left", maintain_order="left")
        .join(theirs, on="mode", how="left", maintain_order="left")
        .with_columns(share_percent=100 * pl.col("first_s") / pl.col("total_s"))
    )
    heads = ["pipeline", "first [s]", "share [%]", "all [s]", "n"]
    heads += ["paper: first [s]", "share [%]", "all [s]"]
    columns = ("first_s", "share_percent", "total_s", "n")
    theirs_as_printed = {row["metric"]: row["value"].split(";") for row in _rows("table-2")}
    rows = [
        [
            MODES[row["mode"]].name,
            *(_text(row[c]) for c in columns),
            *theirs_as_printed.get(row["mode"], "---"),
        ]
        for row in data.to_dicts()
    ]
    page = table(
        heads,
        rows,
        [mode.look for mode in MODES.values()],
        title="Minibatches: the first one and all of them",
        subtitle=f"{_what(chosen)}; {GENERATION} generation processes; paper3 with {COPIERS} "
        "prefetch processes. Medians of n runs; the paper: means of 10, 1,000 minibatches.",
        notes=[*_ratios(data), *_notes(chosen)],
    )
    return Drawing(page.figure, data)


@figure("serizawa", "table-3", title="Staging: time until all nodes hold the whole data set")
def staging(tables: Tables) -> Drawing:
    """Time to copy the whole data set to every node [s]: the paper's way and burstlab's."""
    chosen = tables.where(STAGING)
    cells = labelled(chosen.cells).with_columns(method=parameter("method", "copy"))
    runs = metric(chosen, "staging_time").join(cells.select("record", "method"), on="record")
    data = medians(runs.sort("method", "nodes"), ["method", "nodes"])
    drawn = {(row["method"], row["nodes"]): row for row in data.iter_rows(named=True)}
    theirs = {row["metric"]: row["value"] for row in _rows("table-3")}
    methods = [name for name in ("paper", "copy") if name in set(cells["method"])]
    told = {"paper": "GNU parallel, 8 cp per node [s]", "copy": "burstlab stage [s]"}
    numbers = sorted({*cells["nodes"].unique().to_list()})
    rows = [
        [str(n), *(_cell(drawn.get((m, n))) for m in methods), theirs.get(str(n), "-")]
        for n in numbers
    ]
    page = table(
        ["nodes", *(told[method] for method in methods), "paper [s]"],
        rows,
        [look(cells["storage"][0]) if len(cells) else OTHER] * len(rows),
        title="Staging: time until all nodes hold the whole data set",
        subtitle="Median [95 % bootstrap interval] of n runs. The paper copied 1,261,197 files, "
        "once, to as many nodes; its times are not to be compared with ours, but with each other.",
        notes=[*absent(cells), *issues(cells), *conditions(cells), *_costs(cells)],
    )
    return Drawing(page.figure, data)


def _against(
    chosen: Tables, number: str, across: str, *, title: str, fixed: str, paper: list[Note]
) -> Drawing:
    """Time until all minibatches are loaded [s] against the parameter ``number``."""
    page, data = against_number(
        _runs(chosen, number, "minibatches_time"),
        across,
        title=title,
        subtitle=f"{_what(chosen)}; {fixed}. Lower is better.",
        measure="time for all minibatches [s]",
        notes=[*_notes(chosen), *paper],
    )
    return Drawing(page.figure, data)


def _prefetch(tables: Tables, condition: pl.Expr) -> Tables:
    cells = _with_parameters(tables.where(PREFETCH)).filter(condition)
    return tables.where(pl.col("record").is_in(cells["record"].to_list()))


def _with_parameters(tables: Tables) -> pl.DataFrame:
    named = {name: parameter(name, default) for name, default in DEFAULTS.items()}
    whole = ("minibatches", "batch", "generation", "copiers")
    return tables.cells.with_columns(**named).with_columns(pl.col(whole).cast(pl.Int64))


def _standard() -> pl.Expr:
    return (pl.col("generation") == GENERATION) & (pl.col("copiers") == COPIERS)


def _runs(chosen: Tables, number: str, name: str) -> pl.DataFrame:
    parameters = _with_parameters(chosen).select("record", "mode", number=pl.col(number))
    return metric(chosen, name).join(parameters, on="record")


def _medians(chosen: Tables, name: str) -> pl.DataFrame:
    found = medians(_runs(chosen, "generation", name), ["mode"])
    return found.select("mode", "n", "median")


def _what(chosen: Tables) -> str:
    """How much was loaded, in words."""
    kinds = _with_parameters(chosen).select("minibatches", "batch").unique().sort("minibatches")
    told = [f"{count:,} minibatches of {batch} images" for count, batch in kinds.iter_rows()]
    return " or ".join(told) or "No run"


def _notes(chosen: Tables) -> list[Note]:
    cells = labelled(chosen.cells)
    told = [*absent(cells), *issues(cells), *_same(chosen), *conditions(cells)]
    return [*told, *_costs(cells)]


def _costs(cells: pl.DataFrame) -> list[Note]:
    """What each operation of an emulated parallel file system takes, as its record says."""
    ran = cells.filter((pl.col("status") == "ok") & pl.col("pfs_emulated"))
    told = {fact for fact in ran["pfs"].explode().drop_nulls() if COST.match(fact)}
    return [Note("Emulated", ", ".join(sorted(told)) + ".")] if told else []


def _same(chosen: Tables) -> list[Note]:
    """Whether all pipelines gave the same last minibatch, as their facts tell."""
    facts = chosen.ok().cells["workload_facts"].explode().drop_nulls()
    digests = facts.filter(facts.str.starts_with("last_minibatch_sha256")).unique()
    if len(digests) > 1:
        return [Note("Careful", f"the last minibatches differ: {len(digests)} kinds of content.")]
    return (
        [Note("Equal", "all runs gave the same last minibatch, bit for bit.")]
        if len(digests)
        else []
    )


def _crossing(loaded: pl.DataFrame) -> list[Note]:
    """Until which minibatch direct is ahead of paper3, by the medians."""
    points = (
        loaded.group_by("mode", "minibatch").agg(pl.col("elapsed_s").median()).sort("minibatch")
    )
    pair = [points.filter(pl.col("mode") == mode) for mode in ("direct", "paper3")]
    if any(side.is_empty() for side in pair):
        return []
    both = pair[0].join(pair[1], on="minibatch", suffix="_paper3")
    ahead = both.filter(pl.col("elapsed_s") < pl.col("elapsed_s_paper3"))["minibatch"]
    last = int(both["minibatch"].to_list()[-1])
    until = ahead.to_list()[-1] if len(ahead) else 0
    told = (
        f"for the last time at minibatch {until}" if until < last else f"still at {last}, the last"
    )
    return [Note("Here", f"direct is ahead of paper3 {told}, by the medians.")]


def _ratios(data: pl.DataFrame) -> list[Note]:
    """The ratios that do not depend on how many minibatches were loaded, ours and the paper's."""
    rows = {row["mode"]: row for row in data.to_dicts()}
    told = []
    for one, other, column, what in (
        ("paper3", "direct", "first_s", "first minibatch"),
        ("direct", "paper3", "total_s", "all minibatches"),
        ("lazy", "direct", "first_s", "first minibatch"),
        ("direct", "lazy", "total_s", "all minibatches"),
        ("lazy", "ssd", "total_s", "all minibatches"),
    ):
        a, b = rows[one][column], rows[other][column]
        if a and b:
            pa, pb = rows[one][f"paper_{column}"], rows[other][f"paper_{column}"]
            paper = f" (paper {pa / pb:.2f})" if pa and pb else ""
            told.append(f"{one}/{other}, {what}: {a / b:.2f}{paper}")
    return [Note("Ratios", "; ".join(told) + ".")] if told else []


def _paper_table_2() -> pl.DataFrame:
    names = ("paper_first_s", "paper_share_percent", "paper_total_s")
    rows = [
        {"mode": row["metric"]} | dict(zip(names, map(float, row["value"].split(";")), strict=True))
        for row in _rows("table-2")
    ]
    return pl.DataFrame(rows)


def _rows(number: str) -> list[dict[str, str]]:
    return reference("serizawa", number).to_dicts()


def _text(value: float | int | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else seconds(value)


def _cell(row: dict[str, float] | None) -> str:
    if row is None:
        return "-"
    return f"{seconds(row['median'])} {interval(row['low'], row['high'])}, n = {row['n']}"
