"""Sites: errors in one line, and flags that ``burstlab run`` takes."""

import argparse
import re
import shlex
import shutil
from pathlib import Path

import pytest

from burstlab.cli import run
from burstlab.config.experiment import load_experiment
from burstlab.config.site import Site, load_site, run_arguments
from burstlab.errors import ConfigurationError
from burstlab.pfs.emulation import Emulation
from burstlab.storage import STORAGES

ROOT = Path(__file__).resolve().parents[2]
SITES = sorted(path.stem for path in (ROOT / "config/sites").glob("*.yaml"))
GOOD = """\
title: a cluster
default_scale: paper
scheduler: pbs
cores_per_node: 48
local_dir: $PBS_LOCALDIR
launch: ssh
launch_options: [-p, "2222"]
drop_caches: dropcaches 3
pfs: {directory: /lustre}
modules: {montage: [montage/6.0]}
"""


def load(root: Path, text: str, name: str = "it") -> Site:
    directory = root / "config/sites"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.yaml").write_text(text)
    return load_site(name, root)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("default_scale: paper\n", "", "default_scale: is missing"),
        (
            "scheduler: pbs",
            "scheduler: pbspro",
            "scheduler: 'pbspro': 'none', 'slurm', 'pbs', 'gridengine', 'nqsv' or 'pjm' is wanted",
        ),
        (
            "cores_per_node: 48",
            "cores_per_node: 0",
            "cores_per_node: 0: greater than or equal to 1 is wanted",
        ),
        (
            "launch: ssh",
            "launch: sssh",
            "launch: there is no 'sssh', did you mean 'ssh'? "
            "(allowed: auto, local, ssh, srun, mpirun)",
        ),
        ("{directory: /lustre}", "{}", "pfs: either `directory` or `emulated` is wanted"),
        (
            "{directory: /lustre}",
            "{directory: /lustre, emulated: {}}",
            "pfs: either `directory` or `emulated` is wanted",
        ),
        (
            "{directory: /lustre}",
            "{emulated: {io_latency: 1}}",
            "pfs.emulated.io_latency: no such option, did you mean 'io_latency_ms'? (allowed: "
            "metadata_latency_ms, io_latency_ms, bandwidth_mb_s, metadata_rate)",
        ),
        (
            "{directory: /lustre}",
            "{emulated: {io_latency_ms: fast}}",
            "pfs.emulated.io_latency_ms: 'fast': float is wanted",
        ),
        (
            "modules:",
            "storages: {lustre: {}}\nmodules:",
            f"storages.lustre: there is no 'lustre' (allowed: {', '.join(STORAGES)})",
        ),
        (
            "modules:",
            "storages: {pfs: {stripes: 4}}\nmodules:",
            "storages.pfs.stripes: no such option (allowed: none)",
        ),
    ],
)
def test_one_line_names_key_value_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, line: str
) -> None:
    assert old in GOOD
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value) == f"{tmp_path}/config/sites/it.yaml: {line}"


def test_a_site_that_is_not_there() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_site("abc1", ROOT)
    names = ", ".join(SITES)
    assert str(caught.value) == (
        f"there is no site 'abc1', did you mean 'abci'? (allowed: {names}) in config/sites"
    )


def test_flags_of_a_site(tmp_path: Path) -> None:
    assert shlex.join(load(tmp_path, GOOD).run_arguments("pfs")) == (
        "--launch ssh --local-dir '$PBS_LOCALDIR' --launch-option=-p --launch-option=2222 "
        "--cores-per-node 48 --drop-caches 'dropcaches 3' --pfs /lustre"
    )


def test_only_what_is_said_of_the_emulator_becomes_a_flag(tmp_path: Path) -> None:
    text = GOOD.replace("{directory: /lustre}", "{emulated: {io_latency_ms: 25}}")
    flags = load(tmp_path, text).run_arguments("pfs")
    assert flags[-4:] == ["--pfs", "emulated", "--pfs-option", "io_latency_ms=25"]


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_burstlab_run_takes_the_flags(
    site: str, scale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every cell of the shipped experiment, on every shipped site."""
    nodes = tmp_path / "nodes"
    nodes.write_text("".join(f"host{number}\n" for number in range(16)))
    monkeypatch.setenv("PBS_NODEFILE", str(nodes))
    for name in re.findall(r"\$(\w+)", (ROOT / f"config/sites/{site}.yaml").read_text()):
        monkeypatch.setenv(name, str(tmp_path))  # as in a job there
    monkeypatch.setattr(run, "_manifest", lambda path: None)  # not made here
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    for cell in load_experiment("sawada", ROOT).cells("sawada", scale):
        flags = [*load_site(site, ROOT).run_arguments(cell.storage), *cell.run_arguments()]
        request = run.request(parser.parse_args([*flags, "--", "true"]))
        assert (request.key.experiment, request.key.scale) == ("sawada", scale)
        assert len(request.allocation.hosts) == cell.nodes
        assert request.cell_dir == Path.cwd() / "results" / cell.name
        assert list(request.key.parameters) == cell.block.parameters


def test_site_flag_of_burstlab_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands for the site's flags, which go before those given by hand."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    words = ["--nodes", "2", "--site", "local", "--storage=pfs", "--", "true", "--site", "x"]
    expanded = run.expand(words)
    assert expanded[-7:] == ["--nodes", "2", "--storage=pfs", "--", "true", "--site", "x"]
    assert expanded[:-7] == run_arguments("local", words)
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    request = run.request(parser.parse_args(expanded))
    assert isinstance(request.pfs, Emulation)
    assert request.allocation.virtual
