"""Python environments of their own, for parts whose packages do not go with burstlab's.

``envs/NAME/requirements.lock`` becomes ``.tools/python/NAME``, by the Python that ``python.txt``
names; what has to be compiled is compiled with ``build.lock`` beside it, and without one nothing
may be. burstlab is on its path, so that ``burstlab.pipelines`` can be imported, and burstio is put
into it where it was built.
"""

import hashlib
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from burstlab.doctor.pythons import FINISHED, directory
from tools.setup import burstio, environment, horovod, interpreter, uvtool
from tools.setup.once import run

LISTS = ("requirements.lock", "python.txt")
COMPILING = "build.lock"


def names(root: Path, wanted: Iterable[str]) -> list[str]:
    """Those of the wanted parts that have a Python environment of their own."""
    return [name for name in wanted if (root / "envs" / name / LISTS[0]).is_file()]


def bring_up_to_date(root: Path, name: str, uv: Path | None) -> bool:
    """Make an environment, or make it anew when its lists or the checkout's place have changed.

    Returns whether anything had to be done. Raises DownloadFailed. Where the Python that it wants
    is not there, that is told and what needs it is left out, as ``burstlab doctor`` says too.
    """
    venv, wanted = directory(root, name), _digest(root, name)
    mark = venv / FINISHED
    if mark.exists() and mark.read_text(encoding="ascii") == wanted:
        return burstio.put_into(root, venv, uv)
    began, uv = time.monotonic(), uv or uvtool.find(root) or uvtool.install(root)
    print(f"setup: making {venv.relative_to(root)}", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    if not _make(root, name, uv, venv):
        return False
    package = next((venv / "lib").glob("python3.*")) / "site-packages"
    (package / "burstlab.pth").write_text(f"{root / 'src'}\n", encoding="utf-8")
    burstio.put_into(root, venv, uv)
    mark.write_text(wanted, encoding="ascii")
    print(f"setup: {venv.relative_to(root)} made in {time.monotonic() - began:.0f} s", flush=True)
    return True


def _make(root: Path, name: str, uv: Path, venv: Path) -> bool:
    log, lists = root / ".tools" / "setup.log", root / "envs" / name
    if name == horovod.PART and (lacking := horovod.lacking()):
        print(f"setup: no {', '.join(lacking)} on PATH: envs/{name} is left out", flush=True)
        return False
    version = (lists / "python.txt").read_text(encoding="ascii").strip()
    chosen = interpreter.choose()
    base = chosen.path if chosen.version.startswith(f"{version}.") else version
    done, _ = run([uv, "venv", "--python", base, venv], log, environment.variables(root))
    if not done:
        print(f"setup: no Python {version} on PATH: envs/{name} is left out", flush=True)
        return False
    sync: list[str | Path] = [uv, "pip", "sync", "--python", venv / "bin" / "python"]
    compiling = lists / COMPILING
    sync += ["--build-constraints", compiling] if compiling.exists() else ["--only-binary", ":all:"]
    sync += ["--require-hashes", lists / "requirements.lock"]
    done, output = run(sync, log, environment.variables(root))
    if not done:
        raise uvtool.download_failed(f"envs/{name}", log, output)
    if name == horovod.PART:
        horovod.put_into(root, venv, uv)
    return True


def _digest(root: Path, name: str) -> str:
    found = hashlib.sha256(str(root).encode())
    lists = [root / "envs" / name / list_ for list_ in LISTS]
    if (compiling := root / "envs" / name / COMPILING).exists():
        lists.append(compiling)
    if name == horovod.PART:
        lists.append(root / "envs" / name / "horovod.lock")
        found.update(horovod.choices())
    for list_ in lists:
        found.update(list_.read_bytes())
    return found.hexdigest()
