"""What the rules ask of a campaign, without Snakemake."""

import inspect
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis.registry import figures
from burstlab.config.campaign import Campaign
from burstlab.config.catalog import survey
from burstlab.dataset import make
from burstlab.dataset.model import DATASETS, SyntheticTiles, load_datasets
from burstlab.dataset.synthetic import make_tiles
from burstlab.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("config", "rules", "workflows", "analysis", "envs")
SITES = ", ".join(sorted(path.stem for path in (ROOT / "config/sites").glob("*.yaml")))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout to change things in; the current directory, too."""
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BURSTLAB_2MASS", raising=False)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def conditions(root: Path, name: str) -> str:
    campaign = Campaign(root, {"site": "local"})
    return str(campaign.conditions(SimpleNamespace(cell=name)))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, f"no site: give --profile NAME or --config site= ({SITES})"),
        (
            {"site": "lokal"},
            f"there is no site 'lokal', did you mean 'local'? (allowed: {SITES})",
        ),
        ({"site": "local", "scal": "demo"}, "--config scal=: unknown key, did you mean 'scale'?"),
        (
            {"site": "local", "scale": "papers"},
            "--config scale=papers: there is no such scale, did you mean 'paper'?",
        ),
    ],
)
def test_what_snakemake_is_asked_wrongly(settings: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Campaign(ROOT, settings)
    assert str(caught.value).startswith(line)


def test_figures_are_known_without_drawing_them() -> None:
    assert sorted(survey(ROOT).figures) == sorted(figures())


def test_an_experiment_can_t_have_the_name_of_a_rule(root: Path) -> None:
    experiments = root / "config/experiments"
    (experiments / "sawada.yaml").rename(experiments / "montage.yaml")
    with pytest.raises(ConfigurationError) as caught:
        Campaign(root, {"site": "local"}).check_targets(["demo", "montage"])
    assert str(caught.value) == (
        "config/experiments/montage.yaml: a rule has that name: choose another"
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("figures", "results/figures is for figures: rename it"),
        ("datasets", "results/datasets is for data sets: rename it"),
        ("analysis", "analysis is a file or directory of the checkout, and would be the target"),
        ("my experiment", "its name may have letters, digits and . _ + - only"),
    ],
)
def test_an_experiment_can_t_have_the_name_of_something_else(
    root: Path, name: str, told: str
) -> None:
    experiments = root / "config/experiments"
    (experiments / "sawada.yaml").rename(experiments / f"{name}.yaml")
    with pytest.raises(ConfigurationError) as caught:
        Campaign(root, {"site": "local"})
    assert str(caught.value).startswith(f"config/experiments/{name}.yaml: {told}")


def test_results_of_another_site_are_neither_overwritten_nor_drawn(root: Path) -> None:
    name = "sawada/demo/montage/pfs-none/n1/default/r1"
    local = Campaign(root, {"site": "local"})
    local.prepared("montage")(SimpleNamespace(cell=name))
    local.check_start(local=True)
    assert Campaign(root, {"site": "local"}).targets("sawada", "demo")
    other = Campaign(root, {"site": "slurm"})
    line = "results/sawada/demo holds what was measured on site local, and this is site slurm: "
    with pytest.raises(ConfigurationError, match=line):
        other.targets("sawada", "demo")
    other.prepared("montage")(SimpleNamespace(cell=name))
    with pytest.raises(ConfigurationError, match=line):
        other.check_start(local=False)
    assert other.targets("sawada", "paper")


def test_a_workload_is_a_program(root: Path) -> None:
    (root / "workflows/montage/run").unlink()
    with pytest.raises(ConfigurationError, match=r"workload: there is no 'montage' \(allowed: "):
        Campaign(root, {"site": "local"})


def test_a_cell_that_no_experiment_has() -> None:
    campaign = Campaign(ROOT, {"site": "local"})
    name = "sawada/demo/montage/pfs-none/n3/default/r1"
    with pytest.raises(ConfigurationError) as caught:
        campaign.resources["nodes"](SimpleNamespace(cell=name))
    assert str(caught.value) == f"config/experiments/sawada.yaml has no cell {name!r}"


def test_the_site_s_scale_unless_another_is_asked_for() -> None:
    default = Campaign(ROOT, {"site": "local"}).targets("sawada")
    asked = Campaign(ROOT, {"site": "local", "scale": "paper"}).targets("sawada")
    assert default[0] == "results/sawada/demo/montage/pfs-none/n1/default/r1/record.json"
    assert asked[-1] == "results/figures/sawada/paper/sawada-8.svg"
    assert asked == Campaign(ROOT, {"site": "abci"}).targets("sawada")


@pytest.mark.parametrize(
    ("path", "old", "new", "outdated"),
    [
        ("config/experiments/sawada.yaml", "needs: [shared]", "needs: [shared, mmap]", True),
        ("config/experiments/sawada.yaml", "needs:", "cache: warm\n        needs:", True),
        ("config/experiments/sawada.yaml", "[mosaic.png]", "[mosaic.fits]", True),
        ("config/experiments/sawada.yaml", "dataset: 2mass-demo", "dataset: 2mass", True),
        ("config/sites/local.yaml", "io_latency_ms: 0.5", "io_latency_ms: 25", True),
        ("config/sites/local.yaml", "cores_per_node: 1", "cores_per_node: 2", True),
        ("config/datasets.yaml", "columns: 5", "columns: 6", True),
        ("config/experiments/sawada.yaml", "runtime_min: 10", "runtime_min: 20", False),
        ("config/experiments/sawada.yaml", "repeats: 3", "repeats: 9", False),
        ("config/experiments/sawada.yaml", "title:", "# title\ntitle:", False),
        ("config/sites/local.yaml", "title:", "local_dir: /scratch\ntitle:", False),
        ("config/sites/local.yaml", "title:", "launch: ssh\ntitle:", False),
    ],
)
def test_what_makes_a_record_outdated(
    root: Path, path: str, old: str, new: str, outdated: bool
) -> None:
    name = "sawada/demo/montage/gfarm-eager/n2/default/r1"
    before = conditions(root, name)
    change(root / path, old, new)
    assert (conditions(root, name) != before) == outdated


def test_other_tiles_make_a_record_outdated_and_moved_ones_do_not(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "sawada/demo/montage/gfarm-eager/n2/default/r1"
    tile = SyntheticTiles(columns=1, rows=1, tile_width=64, tile_height=64, stars_per_tile=5)
    synthetic = conditions(root, name)
    for place, tiles in (
        ("here", tile),
        ("moved", tile),
        ("brighter", tile.model_copy(update={"seed": 1})),  # the same name and size
    ):
        make_tiles(root / place, tiles)
    dataset, path = load_datasets(root / DATASETS)["2mass-demo"], make.manifest_path("2mass-demo")
    found = {}
    for place in ("here", "moved", "brighter"):
        monkeypatch.setenv("BURSTLAB_2MASS", str(root / place))
        assert make.is_replaced("2mass-demo", dataset) == (place == "brighter")
        make.make("2mass-demo", dataset, path)
        assert not make.is_replaced("2mass-demo", dataset)
        found[place] = conditions(root, name)
    assert found["here"] == found["moved"] != found["brighter"]
    assert synthetic not in found.values()
    monkeypatch.delenv("BURSTLAB_2MASS")
    assert make.is_replaced("2mass-demo", dataset)


def test_a_deleted_manifest_makes_no_record_outdated(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "sawada/demo/montage/gfarm-eager/n2/default/r1"
    make_tiles(root / "tiles", SyntheticTiles(columns=1, rows=1, tile_width=64, tile_height=64))
    monkeypatch.setenv("BURSTLAB_2MASS", str(root / "tiles"))
    path = make.manifest_path("2mass-demo")
    made = make.make("2mass-demo", load_datasets(root / DATASETS)["2mass-demo"], path)
    before = conditions(root, name)
    record = root / "results" / name / "record.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"dataset": made.describe()}))
    path.unlink()
    assert conditions(root, name) == before


def test_no_job_starts_on_a_login_node() -> None:
    with pytest.raises(ConfigurationError, match=r"^site abci: the profile has no executor"):
        Campaign(ROOT, {"site": "abci"}).check_start(local=True)
    Campaign(ROOT, {"site": "abci"}).check_start(local=False)
    Campaign(ROOT, {"site": "local"}).check_start(local=True)


def test_a_scale_that_the_experiment_lacks(root: Path) -> None:
    """Asked for by the site's default, too: an empty target would look like success."""
    path = root / "config/experiments/small.yaml"
    text = (root / "config/experiments/sawada.yaml").read_text()
    path.write_text(text[: text.index("  # The paper")])
    with pytest.raises(ConfigurationError) as caught:
        Campaign(root, {"site": "abci"}).targets("small")
    assert re.fullmatch(
        r"config/experiments/small.yaml has no scale 'paper' \(allowed: demo.*\): "
        "give --config scale=",
        str(caught.value),
    )


def test_functions_have_their_signature_at_hand() -> None:
    """As Snakemake looks at it: what it passes depends on the names of the parameters."""
    campaign = Campaign(ROOT, {"site": "local"})
    assert list(inspect.signature(campaign.run).parameters) == ["wildcards", "output"]
    assert list(inspect.signature(campaign.conditions).parameters) == ["wildcards"]
