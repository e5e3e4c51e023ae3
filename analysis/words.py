"""What is printed under a figure: conditions, cells without a result, issues of the runs."""

import re
from typing import NamedTuple

import polars as pl

from analysis.series import labelled

SOURCES = {
    "given": "real files, given by the user",
    "fetched": "real files, fetched from the archive",
    "synthetic": "synthetic files, made by burstlab's generator",
}
MOST_ISSUES = 4
NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Note(NamedTuple):
    """A paragraph under a figure and the word that says what it is about."""

    about: str
    text: str


def seconds(value: float) -> str:
    """A time in seconds with three figures, to the millisecond, without its unit."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}" if value >= 0.0005 else "<0.001"


def interval(low: float | None, high: float | None) -> str:
    """An interval of seconds, or that there is none."""
    if low is None or high is None:
        return "[no interval]"
    return f"[{seconds(low)}, {seconds(high)}]"


def count(n: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def datasets(cells: pl.DataFrame) -> list[str]:
    """One phrase per data set used: name, whether its files are real, number and size."""
    used = cells.filter(pl.col("dataset") != "").unique(
        ["dataset", "dataset_source", "dataset_files", "dataset_bytes"], maintain_order=True
    )
    phrases = []
    for row in used.drop_nulls("dataset_source").iter_rows(named=True):
        size = f"{row['dataset_files']} files, {(row['dataset_bytes'] or 0) / 1e6:.1f} MB"
        source = SOURCES.get(row["dataset_source"], row["dataset_source"])
        phrases.append(f"{row['dataset']} ({source}; {size})")
    return phrases


def conditions(cells: pl.DataFrame) -> list[Note]:
    """Under which conditions the runs drawn were made, as one note; none without runs."""
    ran = cells.filter(pl.col("status") == "ok")
    if ran.is_empty():
        return []
    hosts = ran.select("hostname", "cores", "cpu_model").unique(maintain_order=True)
    parts = datasets(ran)
    caches = sorted(set(ran["cache_state"].drop_nulls()))
    parts += [f"cache: {', '.join(caches)}"] if caches else []
    parts += [f"{cores} cores, {cpu}" for _, cores, cpu in hosts.head(2).iter_rows()]
    loads = [f"{load:.1f}" for load in sorted(ran["load_before"].drop_nulls())]
    ends = dict.fromkeys([loads[0], loads[-1]]) if loads else []
    parts += [f"load before a run: {' to '.join(ends)}"] if loads else []
    parts += [f"nodes: {origin}" for origin in sorted(set(ran["allocation"].drop_nulls()))]
    parts += ["the parallel file system is emulated"] if ran["pfs_emulated"].any() else []
    return [Note("Conditions", " · ".join(parts) + ".")]


def absent(cells: pl.DataFrame) -> list[Note]:
    """One note per reason for cells that were skipped or failed: never dropped silently."""
    gone = labelled(cells).filter(pl.col("status") != "ok")
    groups = gone.group_by("series", "nodes", "status", "reason", maintain_order=True).len()
    return [
        Note(
            status.capitalize(),
            f"{series}, {count(nodes, 'node')} ({count(n, 'cell')}): {reason.rstrip('.')}.",
        )
        for series, nodes, status, reason, n in groups.iter_rows()
    ]


def issues(cells: pl.DataFrame) -> list[Note]:
    """One note: how many of the runs drawn carry issues, and which, the commonest first."""
    ran = cells.filter(pl.col("status") == "ok")
    bad = ran.filter(pl.col("issues").list.len() > 0)
    if bad.is_empty():
        return []
    kinds: dict[str, list[str]] = {}
    for text in bad["issues"].explode():
        kinds.setdefault(NUMBER.sub("#", text), []).append(text)
    ranked = sorted(kinds.values(), key=len, reverse=True)
    told = [f"{_one_for_all(texts).rstrip('.')} ({len(texts)}x)" for texts in ranked[:MOST_ISSUES]]
    more = [f"{len(ranked) - MOST_ISSUES} more kinds"] if len(ranked) > MOST_ISSUES else []
    return [Note("Issues", f"in {len(bad)} of {count(len(ran), 'run')}: {'; '.join(told + more)}.")]


def trained(cells: pl.DataFrame) -> list[Note]:
    """What trainings trained with what, as their ranks themselves tell; and which time that is."""
    wanted = ("network", "side", "batch_per_rank", "epochs", "device", "engine", "collectives")
    told: dict[str, list[str]] = {name: [] for name in (*wanted, "timed")}
    ran = cells.filter(pl.col("status") == "ok")["workload_facts"]
    for fact in ran.explode().drop_nulls().unique(maintain_order=True):
        name, _, value = fact.partition(" ")
        if name in told:
            told[name].append(value)
    if not any(told.values()):
        return []
    of = {name: " or ".join(sorted(found)) for name, found in told.items()}
    text = (
        f"{of['network']} on squares of {of['side']} pixels, {of['batch_per_rank']} images to a "
        f"minibatch of each rank, {of['epochs']} epochs, on {of['device']}; "
        f"{', '.join(filter(None, (of['engine'], of['collectives'])))}. Timed: {of['timed']}."
    )
    return [Note("Training", text)]


def _one_for_all(texts: list[str]) -> str:
    """Texts that differ in their numbers only, as one with the least and the largest of each."""
    columns = zip(*(NUMBER.findall(text) for text in texts), strict=True)
    ends = iter([(min(column, key=float), max(column, key=float)) for column in columns])

    def spread(_: re.Match[str]) -> str:
        low, high = next(ends)
        return low if float(low) == float(high) else f"{low} to {high}"

    return NUMBER.sub(spread, texts[0])
