"""burstio's crates are pinned by checksum without the address of a registry, and built once."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.setup.checkout import ROOT
from tools.setup import burstio, cratelock, rust
from tools.setup.failure import SetupError

CRATE = ROOT / burstio.CRATE
LOCK = (CRATE / "crates.lock").read_text()
ADDRESS = "registry+https://registry.invalid/index"


def test_lock_has_checksums_but_no_addresses() -> None:
    assert "://" not in LOCK
    packages = tomllib.loads(LOCK)["package"]
    lacking = [package["name"] for package in packages if "checksum" not in package]
    assert lacking == ["burstio"]


def test_address_comes_back_for_each_crate_of_the_registry() -> None:
    whole = cratelock.with_source(LOCK, ADDRESS)
    packages = tomllib.loads(whole)["package"]
    assert {p.get("source") for p in packages if p["name"] != "burstio"} == {ADDRESS}
    assert "source" not in next(p for p in packages if p["name"] == "burstio")
    assert cratelock.without_source(whole) == LOCK


def test_known_address_is_used_without_asking_cargo(tmp_path: Path) -> None:
    (tmp_path / "crates.lock").write_text(LOCK)
    (tmp_path / "Cargo.lock").write_text(f'source = "{ADDRESS}"\n')
    cratelock.complete(tmp_path, Path("/nowhere"), tmp_path / "log")
    assert (tmp_path / "Cargo.lock").read_text() == cratelock.with_source(LOCK, ADDRESS)


def test_digest_changes_with_any_source_but_not_with_what_is_built(tmp_path: Path) -> None:
    for name in ("Cargo.toml", "crates.lock", "pyproject.toml", "src/copy/mod.rs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    before = burstio.digest(tmp_path)
    (tmp_path / "Cargo.lock").write_text("made")
    (tmp_path / "target").mkdir()
    assert burstio.digest(tmp_path) == before
    (tmp_path / "src/copy/mod.rs").write_text("two")
    assert burstio.digest(tmp_path) != before


def test_versions_of_rust_agree() -> None:
    package = tomllib.loads((CRATE / "Cargo.toml").read_text())["package"]
    least = ".".join(map(str, rust.OLDEST))
    assert package["rust-version"] == least
    assert f"rust >={least}" in (ROOT / "envs" / burstio.PART / "conda.yaml").read_text()


@pytest.mark.parametrize("version", ["1.63.0", "0.66.0", "2"])
def test_old_toolchain_is_passed_over(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 12's own cargo is 0.66 with rustc 1.63, beside which rustup may have a newer one."""
    for directory, told in (("old", version), ("home/bin", "1.999.0")):
        (tmp_path / directory).mkdir(parents=True)
        for name in ("cargo", "rustc"):
            program = tmp_path / directory / name
            program.write_text(f"#!/bin/sh\necho {name} {told}\n")
            program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:/usr/bin:/bin")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "home"))
    assert rust.find() == tmp_path / "home" / "bin"


def test_a_toolchain_that_does_not_work_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="no cargo works"):
        burstio.lock(ROOT)


def test_no_registry_is_named_in_the_crate() -> None:
    for path in [CRATE / "Cargo.toml", CRATE / "pyproject.toml", *CRATE.rglob("*.rs")]:
        assert not re.search(r"crates\.io|registry\+", path.read_text()), path
