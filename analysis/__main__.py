"""``python -m analysis``: figures and tables from records, without Snakemake."""

import argparse
import sys
from pathlib import Path

from analysis import files, records, registry
from analysis.tables import Tables
from burstlab.errors import BurstlabError


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0, or that of the error told in one line."""
    parsed = _parser().parse_args(arguments)
    try:
        paths: list[Path] = parsed.act(parsed)
    except BurstlabError as error:
        print(f"analysis: {error}", file=sys.stderr)
        return error.exit_status
    for path in paths:
        print(path)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m analysis", description=__doc__)
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    act = actions.add_parser("list", help="the figures that can be drawn")
    act.set_defaults(act=_list)

    act = actions.add_parser("draw", help="all that an experiment lists, from what is there")
    act.add_argument("experiment", help="its name, as in config/experiments")
    act.add_argument("--scale", default="demo", help="demo or paper (default: demo)")
    act.add_argument("--results", type=Path, default=Path("results"))
    act.add_argument("--output", type=Path, help="default: RESULTS/figures/EXPERIMENT/SCALE")
    act.set_defaults(act=_draw)

    act = actions.add_parser("figure", help="one figure")
    act.add_argument("paper", help="e.g. sawada")
    act.add_argument("number", help="e.g. 1")
    act.add_argument("--output", type=Path, required=True, help="path without its suffix")
    act.set_defaults(act=_figure)
    _add_source(act)

    act = actions.add_parser("tell", help="the timing table and what was measured")
    act.add_argument("--output", type=Path, required=True, help="directory")
    act.set_defaults(act=_tell)
    _add_source(act)

    act = actions.add_parser("tables", help="records into Parquet tables, read once, drawn often")
    source = act.add_mutually_exclusive_group(required=True)
    source.add_argument("--records", type=Path, nargs="+", help="record files or directories")
    source.add_argument("--experiment", help="the records of the cells that it has now")
    act.add_argument("--scale", default="demo", help="of the experiment (default: demo)")
    act.add_argument("--results", type=Path, default=Path("results"))
    act.add_argument("--output", type=Path, required=True, help="directory")
    act.set_defaults(act=_tables)
    return parser


def _add_source(act: argparse.ArgumentParser) -> None:
    source = act.add_mutually_exclusive_group(required=True)
    source.add_argument("--records", type=Path, nargs="+", help="record files or directories")
    source.add_argument("--tables", type=Path, help="directory made by `tables`")


def _source(parsed: argparse.Namespace) -> Tables:
    return Tables.read(parsed.tables) if parsed.tables else records.load(parsed.records)


def _list(_: argparse.Namespace) -> list[Path]:
    for name, figure in registry.figures().items():
        print(f"{name:12} {figure.title}")
    return []


def _draw(parsed: argparse.Namespace) -> list[Path]:
    from burstlab.config.experiment import load_experiment

    experiment = load_experiment(parsed.experiment)
    tables = records.load(_planned(parsed))
    output = parsed.output or parsed.results / "figures" / parsed.experiment / parsed.scale
    wanted = experiment.figures_at(parsed.scale)
    drawn = [files.draw(registry.find(f), tables, output / f) for f in wanted]
    return [*(path for paths in drawn for path in paths), *files.tell(tables, output)]


def _planned(parsed: argparse.Namespace) -> list[Path]:
    """Record files of the cells that the experiment has; others are left out, and it is told."""
    from burstlab.config.experiment import EXPERIMENTS, load_experiment

    name, scale = parsed.experiment, parsed.scale
    cells = {parsed.results / cell.name for cell in load_experiment(name).cells(name, scale)}
    found = records.find(parsed.results / name / scale)
    planned = [path for path in found if path.parent in cells]
    if others := len(found) - len(planned):
        print(
            f"left out: {others} of {len(found)} records in {parsed.results / name / scale}, "
            f"of cells that {EXPERIMENTS / name}.yaml no longer has",
            file=sys.stderr,
        )
    return planned


def _figure(parsed: argparse.Namespace) -> list[Path]:
    figure = registry.find(f"{parsed.paper}-{parsed.number}")
    return files.draw(figure, _source(parsed), parsed.output)


def _tell(parsed: argparse.Namespace) -> list[Path]:
    return files.tell(_source(parsed), parsed.output)


def _tables(parsed: argparse.Namespace) -> list[Path]:
    records.load(parsed.records or _planned(parsed)).write(parsed.output)
    return sorted(parsed.output.glob("*.parquet"))


if __name__ == "__main__":
    sys.exit(main())
