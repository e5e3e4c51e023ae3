"""What an experiment's records were made of, as reStructuredText for the report's first page."""

import polars as pl

from analysis.series import labelled
from analysis.tables import Tables
from analysis.words import absent, count, datasets, issues


def summary(tables: Tables) -> str:
    """Data, storages, machine, code and verdict, one bullet each, from the records alone."""
    cells = tables.cells
    of = {state: len(cells.filter(pl.col("status") == state)) for state in cells["status"].unique()}
    told = ", ".join(f"{n} {state}" for state, n in sorted(of.items()))
    title = ", ".join(sorted(set(cells["experiment"]))) or "records without an experiment"
    scale = ", ".join(sorted(set(cells["scale"])))
    heading = f"Experiment {title} at {scale} scale" if scale else title
    bullets = [
        f"**Cells**: {count(len(cells), 'cell')} ({told}).",
        *_traced(cells),
        *(f"**Data**: {phrase}." for phrase in datasets(cells)),
        f"**Storages**: {'; '.join(_storages(cells))}.",
        *_parallel_file_system(cells),
        *(f"**Machine**: {machine}." for machine in _machines(cells)),
        *(f"**Workload**: {facts}." for facts in _workloads(cells)),
        *(f"**Code**: {code}." for code in _code(cells)),
        *(f"**{about}**: {text}" for about, text in [*absent(cells), *issues(cells)]),
    ]
    lines = "\n".join(f"- {_plain(bullet)}" for bullet in bullets)
    return f"{heading}\n{'-' * len(heading)}\n\n{lines}\n"


def _traced(cells: pl.DataFrame) -> list[str]:
    n = int(cells["traced"].sum())
    return [f"**Traced**: {count(n, 'cell')}, left out of whatever shows times."] if n else []


def _storages(cells: pl.DataFrame) -> list[str]:
    return labelled(cells)["series"].unique(maintain_order=True).to_list()


def _parallel_file_system(cells: pl.DataFrame) -> list[str]:
    used = cells.drop_nulls("pfs_emulated").filter("pfs_emulated")
    costs = used["pfs"].list.join(", ").unique(maintain_order=True).to_list()
    return [
        f"**The parallel file system is emulated** ({cost}): its times are those of a model, "
        "not of a machine."
        for cost in costs
    ]


def _machines(cells: pl.DataFrame) -> list[str]:
    rows = cells.select("hostname", "cpu_model", "cores", "memory_bytes", "kernel", "allocation")
    return [
        f"{host}: {cpu}, {count(cores, 'core')}, {(memory or 0) / 2**30:.0f} GiB memory, "
        f"Linux {kernel}" + (f"; nodes: {allocation}" if allocation else "")
        for host, cpu, cores, memory, kernel, allocation in rows.drop_nulls("hostname")
        .unique(maintain_order=True)
        .iter_rows()
    ]


def _workloads(cells: pl.DataFrame) -> list[str]:
    rows = cells.filter(pl.col("workload_facts").list.len() > 0)
    facts = rows.select("workload", pl.col("workload_facts").list.join(", "))
    return [f"{name}: {told}" for name, told in facts.unique(maintain_order=True).iter_rows()]


def _code(cells: pl.DataFrame) -> list[str]:
    rows = cells.select("burstlab", "git_sha", "git_dirty").drop_nulls("burstlab")
    return [
        f"burstlab {version}, "
        + (f"commit {sha[:12]}" if sha else "not from a checkout")
        + (", with changes not committed" if dirty else "")
        for version, sha, dirty in rows.unique(maintain_order=True).iter_rows()
    ]


def _plain(text: str) -> str:
    """Text from records must not be taken for markup, save the bold words this module sets."""
    escaped = text.replace("\\", "\\\\")
    for sign in ("`", "_", "|"):
        escaped = escaped.replace(sign, f"\\{sign}")
    head, bold, rest = escaped.partition("**: ") if "**: " in escaped else (escaped, "", "")
    return head + bold + rest.replace("*", "\\*") if bold else head
