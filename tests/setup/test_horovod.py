"""Horovod, which is compiled for MXNet's environment: once, and only where it can be."""

import shutil
import subprocess
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
