"""Horovod for MXNet: compiled once, with gloo and this machine's MPI, put into its environment.

There is no wheel of it anywhere. It is compiled in the environment it is for, since it takes
MXNet's headers from there, and kept for the next time that environment is made.
"""

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from tools.setup import environment, uvtool
from tools.setup.failure import DownloadFailed
from tools.setup.once import last_lines, run

PART = "mxnet"  # the directory of envs/ it belongs to
PROGRAMS = ("g++", "make", "mpicxx")
CHOSEN = {
    "HOROVOD_WITH_MXNET": "1",
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
}


def lacking() -> list[str]:
    """The programs to compile it with that are not here."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def put_into(root: Path, venv: Path, uv: Path) -> None:
    """Have it in MXNet's environment, which is complete but for it. Raises DownloadFailed."""
    wheels = root / ".tools" / "horovod"
    kept = wheels / _digest(root, venv)
    wheel = next(kept.glob("*.whl"), None) or _compile(root, venv, kept)
    log = root / ".tools" / "setup.log"
    install: list[str | Path] = [uv, "pip", "install", "--python", venv / "bin" / "python"]
    done, output = run(
        [*install, "--offline", "--no-deps", wheel], log, environment.variables(root)
    )
    if not done:
        raise uvtool.download_failed("Horovod", log, output)


def _compile(root: Path, venv: Path, kept: Path) -> Path:
    log, began = root / ".tools" / "setup.log", time.monotonic()
    print("setup: compiling Horovod (some minutes)", flush=True)
    shutil.rmtree(kept.parent, ignore_errors=True)
    partial = kept.parent / "partial"
    python = venv / "bin" / "python"
    argv: list[str | Path] = [python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    argv += ["--no-cache-dir", "--no-binary", ":all:", "--require-hashes", "--wheel-dir", partial]
    argv += ["--requirement", root / "envs" / PART / "horovod.lock"]
    path = f"{venv / 'bin'}:{os.environ.get('PATH', os.defpath)}"  # CMake is there
    cores = len(os.sched_getaffinity(0))
    done, output = run(argv, log, {**CHOSEN, "PATH": path, "MAKEFLAGS": f"-j{cores}"})
    if not done:
        raise DownloadFailed(f"Horovod could not be compiled ({log}):\n{last_lines(output, 20)}")
    partial.rename(kept)
    print(f"setup: Horovod compiled in {time.monotonic() - began:.0f} s", flush=True)
    return next(kept.glob("*.whl"))


def choices() -> bytes:
    """How it is compiled: part of what tells one environment from another."""
    return repr(sorted(CHOSEN.items())).encode()


def _digest(root: Path, venv: Path) -> str:
    """Of all that it is compiled from and against."""
    found = hashlib.sha256(choices())
    for name in ("requirements.lock", "horovod.lock"):
        found.update((root / "envs" / PART / name).read_bytes())
    for program in (venv / "bin" / "python", "mpicxx"):
        told = subprocess.run([program, "--version"], capture_output=True, check=False)
        found.update(told.stdout)
    mpi = subprocess.run(["mpicxx", "-show"], capture_output=True, check=False)
    found.update(mpi.stdout)
    return found.hexdigest()
