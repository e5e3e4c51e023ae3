"""Experiments: what is wrong with one is told in one line; what is right becomes cells."""

import textwrap
from pathlib import Path

import pytest

from burstlab.config.catalog import Catalog
from burstlab.config.experiment import Experiment, load_experiment
from burstlab.errors import ConfigurationError

CATALOG = Catalog(
    storages=("pfs", "nodelocal", "gfarm"),
    workloads=("montage", "terasort"),
    datasets=("2mass", "2mass-demo"),
    figures=("sawada-1", "sawada-2"),
)
GOOD = """\
title: a title
figures: [sawada-1]
scales:
  demo:
    repeats: 2
    blocks:
      - workload: montage
        dataset: 2mass-demo
        needs: [shared]
        runtime_min: 10
        product: {nodes: [1, 2], tile: [64, 128]}
        zip: [{storage: [pfs, gfarm], staging: [none, eager]}]
        exclude: [{storage: pfs, tile: 128}]
"""
BLOCK = "scales.demo.blocks.0"


def load(root: Path, text: str) -> Experiment:
    directory = root / "config/experiments"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "it.yaml").write_text(text)
    return load_experiment("it", root, CATALOG)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("title: a title\n", "", "title: is missing"),
        (
            "repeats: 2",
            "repeats: 0",
            "scales.demo.repeats: 0: greater than or equal to 1 is wanted",
        ),
        ("repeats: 2", "repeats: two", "scales.demo.repeats: 'two': a valid integer is wanted"),
        (
            "runtime_min: 10",
            "runtime_minutes: 10",
            f"{BLOCK}.runtime_minutes: unknown key, did you mean 'runtime_min'? (allowed: "
            "workload, dataset, needs, cache, stage_out, emulated_pfs, runtime_min, repeats, "
            "product, zip, exclude)",
        ),
        (
            "workload: montage",
            "workload: montag",
            f"{BLOCK}.workload: there is no 'montag', did you mean 'montage'? "
            "(allowed: montage, terasort)",
        ),
        (
            "2mass-demo",
            "imagenet",
            f"{BLOCK}.dataset: there is no 'imagenet' (allowed: 2mass, 2mass-demo)",
        ),
        (
            "storage: [pfs, gfarm]",
            "storage: [pfs, gfram]",
            f"{BLOCK}.storage: there is no 'gfram', did you mean 'gfarm'? "
            "(allowed: pfs, nodelocal, gfarm)",
        ),
        (
            "[none, eager]",
            "[none, aeger]",
            f"{BLOCK}.staging: there is no 'aeger', did you mean 'eager'? "
            "(allowed: none, eager, lazy)",
        ),
        (
            "[sawada-1]",
            "[sawada-3]",
            "figures.0: there is no 'sawada-3', did you mean 'sawada-2'? "
            "(allowed: sawada-1, sawada-2)",
        ),
        (
            "needs: [shared]",
            "needs: [posix]",
            f"{BLOCK}.needs.0: 'posix': 'shared' or 'mmap' is wanted",
        ),
        (
            "needs: [shared]",
            "stage_out: [out/*, ../etc]",
            f"{BLOCK}.stage_out.1: '../etc': a pattern below $BURSTLAB_MOUNT is wanted, such as "
            "out/*",
        ),
        ("nodes: [1, 2]", "nodes: [1, 0]", f"{BLOCK}.nodes: 0: a whole number from 1 is wanted"),
        (
            "nodes: [1, 2]",
            "nodes: [1, '2']",
            f"{BLOCK}.nodes: '2': a whole number from 1 is wanted",
        ),
        (
            "nodes: [1, 2], ",
            "",
            f"{BLOCK}.nodes: this dimension is missing (there are: tile, storage, staging)",
        ),
        (
            "nodes: [1, 2]",
            "nodes: []",
            f"{BLOCK}.product.nodes: the matrix is empty: this dimension has no values",
        ),
        ("nodes: [1, 2]", "nodes: 1", f"{BLOCK}.product.nodes: 1: a valid list is wanted"),
        (
            "staging: [none, eager]",
            "staging: [none]",
            f"{BLOCK}.zip.0: lists of one length are wanted: storage has 2, staging has 1",
        ),
        (
            "tile: 128}]",
            "tile: 256}]",
            f"{BLOCK}.exclude.0: no point is left that has storage=pfs, tile=256",
        ),
        (
            "{storage: pfs, tile: 128}",
            "{tile: [64, 128]}",
            f"{BLOCK}: the matrix is empty: every point is excluded",
        ),
        (
            "{storage: pfs, tile: 128}",
            "{tiles: 128}",
            f"{BLOCK}.exclude.0.tiles: no such dimension, did you mean 'tile'? "
            "(allowed: nodes, tile, storage, staging)",
        ),
        (
            "nodes: [1, 2]",
            "nodes: [1, 1]",
            "scales.demo.blocks.0: two cells have the name 'montage/pfs-none/n1/tile=64', the "
            "other one in blocks.0",
        ),
        (
            "tile: [64, 128]",
            "tile: [64, a/b]",
            f"{BLOCK}.product.tile.1: 'a/b': letters, digits and . _ + - are allowed, for it "
            "names a directory",
        ),
        (
            "tile: [64, 128]",
            "tile: [64, {a: 1}]",
            f"{BLOCK}.product.tile.1: {{'a': 1}}: a word, a number, true or false is wanted",
        ),
        (
            "tile: [64, 128]",
            "cache: [cold, warm]",
            f"{BLOCK}.cache: no dimension can have this name: it has a meaning of its own",
        ),
        (
            "tile: [64, 128]",
            "scale: [64, 128]",
            f"{BLOCK}.scale: no dimension can have this name: it has a meaning of its own",
        ),
        (
            "tile: [64, 128]",
            "Tile: [64, 128]",
            f"{BLOCK}.Tile: a dimension's name is lower-case letters, digits and _",
        ),
        ("demo:", "Demo:", "scales.Demo: a scale's name is lower-case letters, digits and _"),
        (
            "demo:",
            "paper:\n  demo:",
            "scales.paper: None: a mapping is wanted, of repeats, figures, blocks",
        ),
        (
            "repeats: 2",
            "figures: [sawada-2]\n    repeats: 2",
            "scales.demo.figures.0: there is no 'sawada-2', did you mean 'sawada-1'? "
            "(allowed: sawada-1)",
        ),
        (
            "figures:",
            "part_of_demo: yes please\nfigures:",
            "part_of_demo: 'yes please': a valid boolean is wanted",
        ),
    ],
)
def test_one_line_names_key_value_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, line: str
) -> None:
    assert old in GOOD
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value) == f"{tmp_path}/config/experiments/it.yaml: {line}"


def test_a_scale_may_feed_some_of_the_figures_only(tmp_path: Path) -> None:
    text = GOOD.replace("[sawada-1]", "[sawada-1, sawada-2]")
    assert load(tmp_path, text).figures_at("demo") == ["sawada-1", "sawada-2"]
    text = text.replace("repeats: 2", "figures: [sawada-2]\n    repeats: 2")
    assert load(tmp_path, text).figures_at("demo") == ["sawada-2"]


def test_two_blocks_with_one_cell(tmp_path: Path) -> None:
    second = """\
      - workload: montage
        runtime_min: 10
        product: {nodes: [2], tile: [64, 32], storage: [gfarm], staging: [eager]}
    """
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, GOOD + textwrap.indent(textwrap.dedent(second), "      "))
    assert str(caught.value).endswith(
        "it.yaml: scales.demo.blocks.1: two cells have the name "
        "'montage/gfarm-eager/n2/tile=64', the other one in blocks.0"
    )


def test_part_of_the_demo_without_a_demo(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, "part_of_demo: true\n" + GOOD.replace("demo:\n", "paper:\n"))
    assert str(caught.value).endswith(
        "it.yaml: part_of_demo: there is no scale `demo` to be part of it"
    )


def test_a_name_too_long_for_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"blocks\.0: '.*': too long for a directory$"):
        load(tmp_path, GOOD.replace("[64, 128]", f"[64, 128, {'9' * 300}]"))


def test_cells_are_the_points_times_the_repeats(tmp_path: Path) -> None:
    names = [cell.name for cell in load(tmp_path, GOOD).cells("it", "demo")]
    points = ["pfs-none/n1/tile=64", "gfarm-eager/n1/tile=64", "gfarm-eager/n1/tile=128"]
    points += [point.replace("/n1/", "/n2/") for point in points]
    expected = [f"it/demo/montage/{point}/r{repeat}" for repeat in (1, 2) for point in points]
    assert names == expected


def test_a_block_may_have_repeats_of_its_own(tmp_path: Path) -> None:
    other = "      - {workload: terasort, runtime_min: 5, repeats: 3, product: {storage: [pfs], "
    text = f"{GOOD}{other}staging: [none], nodes: [1]}}}}\n".replace("repeats: 2", "repeats: 1", 1)
    names = [cell.name.split("/", 2)[2] for cell in load(tmp_path, text).cells("it", "demo")]
    terasort = [f"terasort/pfs-none/n1/default/r{repeat}" for repeat in (1, 2, 3)]
    assert [name for name in names if name.startswith("terasort")] == terasort
    assert {name[-2:] for name in names if name.startswith("montage")} == {"r1"}


def test_without_parameters_the_path_says_default(tmp_path: Path) -> None:
    text = GOOD.replace(", tile: [64, 128]", "").replace("[{storage: pfs, tile: 128}]", "[]")
    assert (
        next(load(tmp_path, text).cells("it", "demo")).name
        == "it/demo/montage/pfs-none/n1/default/r1"
    )


def test_the_order_of_dimensions_does_not_move_results(tmp_path: Path) -> None:
    one = GOOD.replace("tile: [64, 128]", "tile: [64, 128], engine: [rake], fast: [true]")
    other = GOOD.replace(
        "nodes: [1, 2], tile: [64, 128]",
        "fast: [true], tile: [128, 64], engine: [rake], nodes: [2, 1]",
    )
    names = [
        {cell.name for cell in load(tmp_path, text).cells("it", "demo")} for text in (one, other)
    ]
    assert names[0] == names[1]
    assert "it/demo/montage/gfarm-eager/n2/engine=rake+fast=true+tile=64/r1" in names[0]


def test_flags_of_a_cell(tmp_path: Path) -> None:
    text = GOOD.replace("needs:", "stage_out: [out/*, mosaic.png]\n        needs:")
    cells = {cell.name: cell for cell in load(tmp_path, text).cells("it", "demo")}
    cell = cells["it/demo/montage/gfarm-eager/n2/tile=64/r2"]
    assert " ".join(cell.run_arguments()) == (
        "--storage gfarm --staging eager --nodes 2 --cache cold --needs shared "
        "--dataset results/datasets/2mass-demo/manifest.json --stage-out out/* "
        "--stage-out mosaic.png --time-limit 540 "
        "--cell-dir results/it/demo/montage/gfarm-eager/n2/tile=64/r2 "
        "--label experiment=it --label scale=demo --label workload=montage --label repeat=2 "
        "--label dataset=2mass-demo --label tile=64"
    )
