"""Python environments of parts whose packages do not go with burstlab's own."""

import platform
import subprocess
from pathlib import Path

import pytest

from burstlab.doctor import pythons
from tests.setup.checkout import ANOTHER, PACKAGE, ROOT, Checkout, locked_entries

THIS = ".".join(platform.python_version_tuple()[:2])


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "checkout", tmp_path / "home")
    part = made.root / "envs" / "little"
    part.mkdir()
    (part / "debian.txt").write_text("")
    (part / "requirements.in").write_text(f"# why\n{PACKAGE}\n")
    lock(made, PACKAGE)
    return made


def lock(checkout: Checkout, package: str, python: str = THIS) -> None:
    entries = locked_entries(ROOT / "envs" / "burstlab" / "requirements.lock")
    part = checkout.root / "envs" / "little"
    (part / "requirements.lock").write_text(entries[package])
    (part / "python.txt").write_text(f"{python}\n")


def set_up(checkout: Checkout) -> str:
    done = subprocess.run(
        ["/usr/bin/python3", "-B", "-m", "tools.setup", "--parts", "little"],
        cwd=checkout.root,
        env=checkout.environment(),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_environment_follows_its_lock(checkout: Checkout) -> None:
    assert "making .tools/python/little" in set_up(checkout)
    assert pythons.problem("little", checkout.root) is None
    python = pythons.python("little", checkout.root)
    assert python == str(checkout.root / ".tools/python/little/bin/python")
    subprocess.run([python, "-c", f"import burstlab, {PACKAGE}"], check=True)
    assert set_up(checkout) == "setup: nothing to do\n"

    lock(checkout, ANOTHER)
    assert "making .tools/python/little" in set_up(checkout)
    told = pythons.problem("little", checkout.root)
    assert told == f"{python} has no package {PACKAGE}"


@pytest.mark.slow
def test_what_wants_another_python_is_left_out_and_told(checkout: Checkout) -> None:
    lock(checkout, PACKAGE, python="3.99")
    assert "no Python 3.99 on PATH: envs/little is left out" in set_up(checkout)
    assert not pythons.directory(checkout.root, "little").exists()


@pytest.mark.requires("chainer")
def test_chainers_environment_has_burstlabs_part_of_it() -> None:
    program = "import chainer, chainermn, burstio, burstlab; print(chainer.__version__)"
    python = pythons.python("chainer")
    assert python is not None
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "7.8.1", done.stderr
