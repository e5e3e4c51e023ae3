"""uv: found, or installed into the checkout from its own lock."""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.setup import interpreter
from tools.setup.failure import DownloadFailed, SetupError
from tools.setup.once import last_lines, run

OLDEST = (0, 8)  # `uv venv --clear`


def find(root: Path) -> Path | None:
    """The checkout's own uv, else one on PATH that is new enough."""
    own = root / ".tools" / "uv" / "bin" / "uv"
    if own.is_file():
        return own
    path = shutil.which("uv")
    if path is None:
        return None
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    words = told.split()
    version = tuple(map(int, words[1].split(".")[:2])) if len(words) > 1 else (0, 0)
    return Path(path) if version >= OLDEST else None


def install(root: Path) -> Path:
    """uv from its lock into ``.tools/uv``, by this Python's pip or a temporary environment's."""
    tools = root / ".tools"
    log, partial, uv = tools / "setup.log", tools / "uv.partial", tools / "uv"
    print("setup: installing uv", flush=True)
    shutil.rmtree(partial, ignore_errors=True)
    if interpreter.has_module("pip"):
        pip = [sys.executable, "-m", "pip"]
    else:
        done, output = run([sys.executable, "-m", "venv", "--clear", tools / "pip"], log)
        if not done:
            raise SetupError(f"python3 -m venv failed ({log}):\n{last_lines(output)}")
        pip = [str(tools / "pip" / "bin" / "python"), "-m", "pip"]
    lock = root / "envs" / "setup" / "requirements.lock"
    options = ["--require-hashes", "--only-binary=:all:", "--no-warn-script-location"]
    quiet = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    done, output = run([*pip, "install", *options, "--target", partial, "-r", lock], log, quiet)
    if not done:
        raise download_failed("uv", log, output)
    shutil.rmtree(uv, ignore_errors=True)
    partial.rename(uv)
    shutil.rmtree(tools / "pip", ignore_errors=True)
    return uv / "bin" / "uv"


def download_failed(what: str, log: Path, output: str) -> DownloadFailed:
    """The error for a tool that could not get or build packages, with its last lines."""
    return DownloadFailed(
        f"{what} could not be installed ({log}):\n{last_lines(output)}\n"
        "Without a network, set UV_DEFAULT_INDEX and PIP_INDEX_URL to a mirror of your site, or "
        "copy a filled uv cache here (UV_CACHE_DIR, UV_OFFLINE=1); then run make again."
    )
