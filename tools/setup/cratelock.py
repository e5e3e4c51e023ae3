"""The lock of burstio's crates, kept without the address of their registry.

``crates.lock`` is cargo's own Cargo.lock less its ``source`` lines: names, versions and checksums.
Cargo wants the address in the file, and is the one who knows it; the lock it makes for itself
tells it.
"""

import re
from pathlib import Path

from tools.setup import rust
from tools.setup.failure import DownloadFailed
from tools.setup.once import last_lines, run

SOURCE = re.compile(r'^source = "(.*)"\n', re.MULTILINE)
CHECKSUM = re.compile(r"^(?=checksum = )", re.MULTILINE)


def complete(crate: Path, toolchain: Path, log: Path) -> None:
    """Write Cargo.lock from crates.lock. Raises DownloadFailed."""
    lock = crate / "Cargo.lock"
    kept = (crate / "crates.lock").read_text(encoding="utf-8")
    made = lock.read_text(encoding="utf-8") if lock.exists() else ""
    address = SOURCE.search(made)
    if address is None:
        _resolve(crate, toolchain, log)
        address = SOURCE.search(lock.read_text(encoding="utf-8"))
        assert address is not None, f"{lock} names no registry"
    wanted = with_source(kept, address[1])
    if wanted != made:
        lock.write_text(wanted, encoding="utf-8")


def renew(crate: Path, toolchain: Path, log: Path) -> None:
    """Resolve anew and write crates.lock: a part of ``make lock``. Raises DownloadFailed."""
    (crate / "Cargo.lock").unlink(missing_ok=True)
    _resolve(crate, toolchain, log)
    made = (crate / "Cargo.lock").read_text(encoding="utf-8")
    (crate / "crates.lock").write_text(without_source(made), encoding="utf-8")


def without_source(lock: str) -> str:
    """A Cargo.lock less the address of its registry."""
    return SOURCE.sub("", lock)


def with_source(lock: str, address: str) -> str:
    """The Cargo.lock that a lock without address was made from."""
    return CHECKSUM.sub(f'source = "{address}"\n', lock)


def _resolve(crate: Path, toolchain: Path, log: Path) -> None:
    argv: list[str | Path] = [toolchain / "cargo", "generate-lockfile"]
    argv += ["--quiet", "--manifest-path", crate / "Cargo.toml"]
    done, output = run(argv, log, rust.environment(toolchain))
    if not done:
        done, _ = run([*argv, "--offline"], log, rust.environment(toolchain))
    if not done:
        raise DownloadFailed(
            f"cargo can't find out about the crates of burstio ({log}):\n{last_lines(output)}\n"
            "Without a network, let cargo's configuration name a mirror or a vendored directory "
            "([source] in ~/.cargo/config.toml), or copy a filled ~/.cargo/registry here; then "
            "run make again."
        )
