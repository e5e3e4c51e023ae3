"""Every experiment can be planned on every site, as the guides say it is typed."""

import re
from pathlib import Path

import pytest
from snakemake.cli import parse_target_jobs_cli_args
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args

from burstlab.config.campaign import Campaign
from tests.workflow.checkout import ROOT, Checkout

SITES = sorted(path.stem for path in (ROOT / "config/sites").glob("*.yaml"))
QUICK = ("local", "lab")
# Of a workload of a paper: storages, nodes, cells, and minutes that a job has at least.
ON_CYGNUS, ON_MANY = {"beeond", "gfarm", "pfs"}, {1, 2, 4, 8, 16}
PAPERS = {
    ("sawada", "montage"): (ON_CYGNUS, {2, 4, 8, 16}, 60, 120),
    ("sawada", "mxnet"): (ON_CYGNUS, {2, 4, 8, 16}, 120, 360),
    ("sawada", "terasort"): (ON_CYGNUS, {2, 4, 8, 16}, 60, 120),
    ("serizawa", "prefetch"): ({"nodelocal", "pfs"}, {1}, 240, 60),
    ("serizawa", "staging"): ({"nodelocal"}, ON_MANY, 100, 120),
    ("serizawa", "chainermn"): ({"nodelocal", "pfs", "gfarm"}, ON_MANY, 75, 360),
}
EXPERIMENTS = sorted(path.stem for path in (ROOT / "config/experiments").glob("*.yaml"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout.make(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize(
    "site", [pytest.param(site, marks=() if site in QUICK else pytest.mark.slow) for site in SITES]
)
def test_all_experiments_on_a_site(
    checkout: Checkout, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout.root)  # results are found from where Snakemake runs
    run = checkout.shell(f"snakemake --profile {site} -n {' '.join(EXPERIMENTS)}")
    assert run.status == 0, run.text
    campaign = Campaign(checkout.root, {"site": site})
    jobs = {path: job for job in run.text.split("\nrule ") for path in outputs(job)}
    for experiment in EXPERIMENTS:
        records = campaign.records(experiment, campaign.scale)
        assert records
        for record in records:  # each job asks for the nodes of its cell
            nodes = re.search(r"/n(\d+)/", record)[1]  # type: ignore[index]
            assert re.search(rf"resources: .*\bnodes={nodes}, runtime=\d+\n", jobs[record])
            assert f"--nodes {nodes} " in jobs[record]
            wanted = TargetSpec("rule", {"cell": str(Path(record).parent)})
            assert parse_target_jobs_cli_args(encode_target_jobs_cli_args([wanted])) == [wanted]
        assert jobs.keys() >= {*campaign.figures(experiment, campaign.scale)}
    if site == "abci":
        check_papers(jobs)


def check_papers(jobs: dict[str, str]) -> None:
    """Whether the planned jobs are all cells of the papers' matrices, and no others."""
    for (experiment, workload), (storages, nodes, cells, least_min) in PAPERS.items():
        place = rf"results/{experiment}/paper/{workload}/(\w+)-\w+/n(\d+)/.*/record\.json"
        found = {path: match for path in jobs if (match := re.fullmatch(place, path))}
        assert {match[1] for match in found.values()} == storages, workload
        assert {int(match[2]) for match in found.values()} == nodes, workload
        assert len(found) == cells, workload
        assert min(runtime(jobs[path]) for path in found) >= least_min, workload
    told = {tuple(path.split("/")[1:4:2]) for path in jobs if path.endswith("/record.json")}
    assert {one for one in told if one[0] in ("sawada", "serizawa")} == set(PAPERS)


def runtime(job: str) -> int:
    """Minutes that a planned job asks for."""
    found = re.search(r"resources: .*\bruntime=(\d+)\n", job)
    assert found
    return int(found[1])


def outputs(job: str) -> list[str]:
    """The files that a planned job makes."""
    found = re.search(r"^    output: (.+)$", job, re.MULTILINE)
    return found[1].split(", ") if found else []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("snakemake --profile local demo -n", 18),
        ("snakemake --profile local sawada -n --config scale=paper", 60),
        ("snakemake --profile local report -n", 18),
        ("snakemake --profile local -n", 18),
    ],
)
def test_a_target(checkout: Checkout, line: str, count: int) -> None:
    run = checkout.shell(line)
    assert run.status == 0, run.text
    assert run.jobs["montage"] == count


def test_a_mistake_is_one_line_before_any_job(checkout: Checkout) -> None:
    path = checkout.root / "config/experiments/wrong.yaml"
    path.write_text("title: wrong\nscale: {}\n")
    try:
        run = checkout.shell("snakemake --profile local demo")
    finally:
        path.unlink()
    assert run.status != 0
    assert run.text.splitlines()[-1] == (
        "burstlab: config/experiments/wrong.yaml: scale: unknown key, did you mean 'scales'? "
        "(allowed: title, paper, figures, part_of_demo, scales)"
    )
    assert "Building DAG" not in run.text


def test_no_site_is_one_line(checkout: Checkout) -> None:
    run = checkout.shell("snakemake --cores 1 demo")
    assert run.status != 0
    assert run.text.splitlines()[-1] == (
        f"burstlab: no site: give --profile NAME or --config site= ({', '.join(SITES)})"
    )


def test_a_login_node_is_not_computed_on(checkout: Checkout) -> None:
    run = checkout.shell("snakemake --profile abci --executor local --cores 1 sawada")
    assert run.status != 0
    assert run.text.splitlines()[-1].startswith("burstlab: site abci: the profile has no executor")
    assert not (checkout.root / "results/environments").exists()
