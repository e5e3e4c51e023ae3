"""Horovod, which is compiled for MXNet's environment: once, and only where it can be."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from burstlab.doctor import pythons
from tests.setup.checkout import ROOT
from tools.setup import horovod, separate


def test_without_a_compiler_mxnet_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "envs/mxnet", tmp_path / "envs/mxnet")
    monkeypatch.setattr(horovod, "PROGRAMS", ("sh", "burstlab-has-no-such-compiler"))
    uv = Path("not called")
    assert not separate.bring_up_to_date(tmp_path, "mxnet", uv)
    told = "setup: no burstlab-has-no-such-compiler on PATH: envs/mxnet is left out\n"
    assert capsys.readouterr().out.endswith(told)
    assert not pythons.directory(tmp_path, "mxnet").exists()


@pytest.mark.requires("mxnet")
def test_an_environment_made_anew_takes_the_wheel_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it is compiled from changed, it is compiled again."""
    root, compiled, installed = tmp_path / "checkout", [], []
    shutil.copytree(ROOT / "envs/mxnet", root / "envs/mxnet")

    def compile_(root: Path, venv: Path, kept: Path) -> Path:
        compiled.append(venv)
        wheel = kept / f"horovod-{len(compiled)}.whl"
        wheel.parent.mkdir(parents=True)
        wheel.touch()
        return wheel

    def run(argv: list[str | Path], log: Path, variables: dict[str, str]) -> tuple[bool, str]:
        installed.append((argv[argv.index("--python") + 1], argv[-1]))
        return True, ""

    monkeypatch.setattr(horovod, "_compile", compile_)
    monkeypatch.setattr(horovod, "run", run)
    first, second = (tmp_path / name / "bin/python" for name in ("first", "second"))
    for python in (first, second):
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        horovod.put_into(root, python.parents[1], Path("uv"))
    assert compiled == [first.parents[1]]
    [wheel] = (root / ".tools/horovod").glob("*/*.whl")
    assert installed == [(first, wheel), (second, wheel)]

    with (root / "envs/mxnet/requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    horovod.put_into(root, second.parents[1], Path("uv"))
    assert compiled[1:] == [second.parents[1]]


@pytest.mark.slow
@pytest.mark.requires("mxnet")
def test_it_is_compiled_for_mpi_and_gloo_and_kept() -> None:
    """Kept under a name that an environment made anew would ask for."""
    python = pythons.python("mxnet")
    assert python is not None
    program = "import horovod.mxnet as h; print(h.mpi_built(), h.gloo_built())"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "True"], done.stderr
    own = pythons.directory(ROOT, "mxnet")
    if python.startswith(str(own)):  # and not some module's
        assert list((ROOT / ".tools/horovod" / horovod._digest(ROOT, own)).glob("horovod-*.whl"))
