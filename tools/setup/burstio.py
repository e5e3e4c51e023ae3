"""burstio, the Rust part: built once for each state of its sources, and put into ``.venv``."""

import hashlib
import os
import shutil
import time
from pathlib import Path

from tools.setup import cratelock, environment, rust, uvtool
from tools.setup.failure import DownloadFailed, SetupError
from tools.setup.once import last_lines, run

CRATE = Path("crates", "burstio")
PART = "rust"  # the directory of envs/ that lists what it is built with
KEPT = 3  # wheels of other states: who goes back and forth between two branches builds nothing


def bring_up_to_date(root: Path, uv: Path | None) -> bool:
    """Have the burstio of these sources in ``.venv``; returns whether anything had to be done.

    Raises DownloadFailed with the compiler's last words.
    """
    wanted = digest(root / CRATE)
    if _installed(root / ".venv") == wanted:
        return False
    uv = uv or uvtool.find(root) or uvtool.install(root)
    wheel = _built(root, wanted) or _build(root, uv, wanted)
    _install(root, root / ".venv", uv, wheel, wanted)
    return True


def put_into(root: Path, venv: Path, uv: Path | None) -> bool:
    """Have it in another environment too, where it was built; returns whether anything was done.

    Raises DownloadFailed.
    """
    wanted = digest(root / CRATE) if (root / CRATE).is_dir() else ""
    wheel = _built(root, wanted)
    if wheel is None or _installed(venv) == wanted:
        return False
    _install(root, venv, uv or uvtool.find(root) or uvtool.install(root), wheel, wanted)
    return True


def _install(root: Path, venv: Path, uv: Path, wheel: Path, wanted: str) -> None:
    _mark(venv).unlink(missing_ok=True)
    install: list[str | Path] = [uv, "pip", "install", "--python", venv / "bin" / "python"]
    install += ["--offline", "--no-deps", "--force-reinstall", wheel]
    done, output = run(install, root / ".tools" / "setup.log", environment.variables(root))
    if not done:
        raise uvtool.download_failed("burstio", root / ".tools" / "setup.log", output)
    _mark(venv).write_text(wanted, encoding="ascii")


def lock(root: Path) -> None:
    """Resolve burstio's crates anew. Raises SetupError."""
    cratelock.renew(root / CRATE, _toolchain(), root / ".tools" / "setup.log")


def digest(crate: Path) -> str:
    """Of everything that burstio is built from."""
    names = ["Cargo.toml", "crates.lock", "pyproject.toml"]
    files = [crate / name for name in names]
    files += [path for top in ("src", "python") for path in sorted((crate / top).rglob("*.*"))]
    found = hashlib.sha256()
    for path in files:
        if path.is_file() and path.suffix not in (".pyc", ".so"):
            content = path.read_bytes()
            found.update(f"{path.relative_to(crate)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _toolchain() -> Path:
    """Debian's packages may be there, and a cargo before them on PATH does not work."""
    if (toolchain := rust.find()) is None:
        raise SetupError("no cargo works that is new enough: docs/install.md tells how to get one")
    return toolchain


def _build(root: Path, uv: Path, wanted: str) -> Path:
    toolchain = _toolchain()
    log, began = root / ".tools" / "setup.log", time.monotonic()
    print("setup: building burstio", flush=True)
    cratelock.complete(root / CRATE, toolchain, log)
    partial = _wheels(root) / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    argv: list[str | Path] = [uv, "build", "--wheel", "--python", root / ".venv" / "bin" / "python"]
    argv += ["--build-constraints", root / "envs" / "burstlab" / "build.lock", "--require-hashes"]
    argv += ["--out-dir", partial, root / CRATE]
    target = {"CARGO_TARGET_DIR": str(root / ".tools" / "cargo")}
    own = {**environment.variables(root), **rust.environment(toolchain), **target}
    done, output = run(argv, log, own)
    if not done:
        raise DownloadFailed(f"burstio could not be built ({log}):\n{last_lines(output, 20)}")
    _forget_old(root)
    partial.rename(_wheels(root) / wanted)
    print(f"setup: burstio built in {time.monotonic() - began:.0f} s", flush=True)
    return next((_wheels(root) / wanted).glob("*.whl"))


def _built(root: Path, wanted: str) -> Path | None:
    return next(_wheels(root).glob(f"{wanted}/*.whl"), None) if wanted else None


def _wheels(root: Path) -> Path:
    return root / ".tools" / "burstio"


def _forget_old(root: Path) -> None:
    others = [path for path in _wheels(root).iterdir() if path.name != "partial"]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[KEPT:]:
        shutil.rmtree(path)


def _mark(venv: Path) -> Path:
    """Inside the environment: where that is made anew, burstio is put into it again."""
    found = next((venv / "lib").glob("python3.*"))
    return found / "site-packages" / "burstio.digest"


def _installed(venv: Path) -> str:
    mark = _mark(venv)
    there = mark.exists() and os.access(mark.parent / "burstio" / "_burstio.abi3.so", os.R_OK)
    return mark.read_text(encoding="ascii") if there else ""
