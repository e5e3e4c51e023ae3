"""Where the programs of a workload come from: conda, environment modules, or the PATH there is."""

import json
import re
from pathlib import Path

import pytest

from burstlab.config.catalog import survey
from burstlab.doctor.environments import of_workload
from tests.workflow.checkout import ROOT, Checkout

MONTAGE = "modules: {montage: [montage/6.0]}\n"
MODULES = Path("/usr/share/modules/init/bash")  # Debian's environment-modules
# What Snakemake 9.27 asks conda before it plans (snakemake.deployment.conda, class Conda); the
# real one is on no machine that tests run on.
CONDA = """\
#!/bin/sh
case "$*" in
    "info --json") echo '{"conda_prefix": "/opt/conda", "platform": "linux-64"}' ;;
    --version) echo "conda 25.9.1" ;;
    "config --get channel_priority --json") echo '{"get": {"channel_priority": "strict"}}' ;;
    *) echo "conda $*: not asked for in a dry run" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    checkout = Checkout.make(tmp_path)
    (checkout.home / "bin/conda").write_text(CONDA)
    (checkout.home / "bin/conda").chmod(0o755)
    return checkout


@pytest.mark.parametrize("name", survey(ROOT).workloads)
def test_a_workload_can_be_had_from_conda(name: str) -> None:
    assert (ROOT / "envs" / of_workload(ROOT, name) / "conda.yaml").is_file()


@pytest.mark.parametrize("path", sorted((ROOT / "rules").glob("*.smk")), ids=lambda p: p.stem)
def test_a_rule_that_runs_cells_takes_conda_and_modules(path: Path) -> None:
    """Of the environment that it has prepared."""
    for rule in re.split(r"^ *rule\b", path.read_text(), flags=re.MULTILINE)[1:]:
        if "campaign.record(" in rule:
            (workload,) = re.findall(r"campaign\.prepared\((\S+)\)", rule)
            own = "{campaign.environment(name)}" if workload == "name" else workload.strip('"')
            assert f'"../envs/{own}/conda.yaml"\n' in rule
            assert f"*campaign.modules({workload})," in rule


@pytest.mark.slow
@pytest.mark.parametrize("method", ["conda", "env-modules", "apptainer"])
def test_every_method_can_be_planned(checkout: Checkout, method: str) -> None:
    checkout.change("config/sites/slurm.yaml", "title:", f"{MONTAGE}title:")
    run = checkout.shell(f"snakemake --profile slurm -n demo --sdm {method}")
    assert run.status == 0, run.text
    assert run.jobs["montage"] == 18
    assert ("envs/montage/conda.yaml will be created" in run.text) == (method == "conda")


@pytest.mark.slow
@pytest.mark.requires("modules")
def test_the_modules_of_a_site_are_loaded(checkout: Checkout) -> None:
    programs = checkout.home / "opt"
    programs.mkdir()
    for name in ("mProjectPP", "mConcatFit", "ruby", "rake"):
        (programs / name).write_text("#!/bin/sh\necho from the module\n")
        (programs / name).chmod(0o755)
    module = checkout.home / "modulefiles/montage/6.0"
    module.parent.mkdir(parents=True)
    module.write_text(f"#%Module\nprepend-path PATH {programs}\n")
    checkout.change("config/sites/local.yaml", "title:", f"{MONTAGE}title:")
    told = "results/environments/montage.json"
    environment = f"BASH_ENV={MODULES} MODULEPATH={module.parents[1]}"
    run = checkout.shell(f"{environment} snakemake --profile local {told} --sdm env-modules")
    assert run.status == 0, run.text
    commands = json.loads((checkout.root / told).read_text())["commands"]
    assert commands["rake"]["path"] == str(programs / "rake")
