"""The Python environment ``.venv``, made by uv from the locks."""

import hashlib
import json
import os
import subprocess
import time
import tomllib
from pathlib import Path

from tools.setup import interpreter, uvtool
from tools.setup.failure import InTheWay
from tools.setup.interpreter import Python
from tools.setup.once import run

SYSTEM_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
UNFINISHED = {"state": "unfinished"}


def bring_up_to_date(root: Path, uv: Path | None) -> bool:
    """Make, update or repair ``.venv``; returns whether anything had to be done.

    What is there is described in ``.tools/setup.json``, written first as unfinished and last as
    finished: an environment whose making was cut short is made anew, since half a package can look
    installed. Raises InTheWay, PythonMissing, DownloadFailed.
    """
    stamp, venv = root / ".tools" / "setup.json", root / ".venv"
    python = interpreter.choose()
    wanted = _description(root, python)
    found = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else None
    usable = found is not None and _works(venv, root)
    if usable and found == wanted:
        return False
    if found is None and venv.exists():
        raise InTheWay(f"{venv} was not made by make setup: move it away first (mv .venv old.venv)")
    started = time.monotonic()
    uv = uv or uvtool.install(root)
    same_base = found is not None and all(found.get(k) == wanted[k] for k in ("python", "root"))
    _write(stamp, UNFINISHED)
    _build(root, uv, python, anew=not (usable and same_base))
    _write(stamp, wanted)
    print(f"setup: .venv made in {time.monotonic() - started:.0f} s ({python.path})", flush=True)
    return True


def _description(root: Path, python: Python) -> dict[str, str]:
    """What the environment depends on: when this changes, it has to be brought up to date."""
    with (root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    digest = hashlib.sha256()
    for name in ("requirements.lock", "build.lock"):
        digest.update((root / "envs" / "burstlab" / name).read_bytes())
    digest.update(repr((project["project"], project["build-system"])).encode())
    return {
        "state": "finished",
        "python": f"{python.path} {python.version}",
        "root": str(root),
        "contents": digest.hexdigest(),
    }


def _works(venv: Path, root: Path) -> bool:
    """Whether the environment's Python runs and finds this checkout's burstlab."""
    program = "import burstlab; print(burstlab.__file__)"
    try:
        done = subprocess.run(
            [venv / "bin" / "python", "-c", program],
            cwd=root / ".tools",  # not the checkout, whose directories could be imported by chance
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except OSError:
        return False
    return done.stdout.strip() == str(root / "src" / "burstlab" / "__init__.py")


def _build(root: Path, uv: Path, python: Python, *, anew: bool) -> None:
    log, venv = root / ".tools" / "setup.log", root / ".venv"
    locks = root / "envs" / "burstlab"
    chosen: list[str | Path] = [
        "--python",
        venv / "bin" / "python",
        "--build-constraints",
        locks / "build.lock",
    ]
    steps: list[list[str | Path]] = [
        [uv, "pip", "sync", *chosen, "--require-hashes", locks / "requirements.lock"],
        [uv, "pip", "install", *chosen, "--no-deps", "--editable", root],
    ]
    if anew:
        print("setup: making .venv", flush=True)
        make: list[str | Path] = [
            uv,
            "venv",
            "--clear",
            "--prompt",
            "burstlab",
            "--python",
            python.path,
            venv,
        ]
        steps.insert(0, make)
    for step in steps:
        done, output = run(step, log, variables(root))
        if not done:
            raise uvtool.download_failed("the Python packages", log, output)


def variables(root: Path) -> dict[str, str]:
    """The variables under which uv is run."""
    own = {"UV_PYTHON_DOWNLOADS": "never", "UV_COMPILE_BYTECODE": "1"}
    return {**own, **_cache(root), **_certificates()}


def _cache(root: Path) -> dict[str, str]:
    """uv's cache: where the user has it, or in the checkout when the home can't be written."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/"), ".cache"))
    nearest = next(path for path in (cache, *cache.parents) if path.exists())
    if "UV_CACHE_DIR" in os.environ or (nearest.is_dir() and os.access(nearest, os.W_OK)):
        return {}
    return {"UV_CACHE_DIR": str(root / ".tools" / "cache")}


def _certificates() -> dict[str, str]:
    """The system's certificates where it has any: a site's own proxy or mirror is known there only.

    The second name is what older versions of uv call it.
    """
    if any(Path(bundle).exists() for bundle in SYSTEM_CERTIFICATES):
        return {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
    return {}


def _write(stamp: Path, description: dict[str, str]) -> None:
    partial = stamp.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(description, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(stamp)
