"""Hadoop's jars for the workload terasort, fetched once by Maven and compared with their lock.

``jars.sha256`` has the SHA-256 and the name, version included, of every jar that ``pom.xml`` means.
Where they come from Maven knows, or its own configuration.
"""

import hashlib
import os
import shutil
import time
from pathlib import Path

from tools.setup.failure import DownloadFailed, SetupError
from tools.setup.once import last_lines, run

PART = "terasort"  # the directory of envs/
DIGEST = "digest"  # beside the jars: of what they were made from


def bring_up_to_date(root: Path) -> bool:
    """Have the jars of the lock in ``.tools/hadoop/jars``; returns whether anything had to be done.

    Raises DownloadFailed. Without Maven that is told and Hadoop is left out.
    """
    place = root / ".tools" / "hadoop"
    wanted = _digest(root)
    if (place / DIGEST).exists() and (place / DIGEST).read_text(encoding="ascii") == wanted:
        return False
    if shutil.which("mvn") is None:
        print(f"setup: no mvn on PATH: Hadoop (envs/{PART}) is left out", flush=True)
        return False
    print("setup: fetching Hadoop", flush=True)
    began, partial = time.monotonic(), place / "partial"
    _fetch(root, partial)
    found, locked = _sums(partial), _lock(root).read_text(encoding="ascii")
    if found != locked:
        differing = sorted({*found.splitlines()} ^ {*locked.splitlines()})
        raise DownloadFailed(
            f"{len(differing)} lines of {_lock(root)} are not what Maven brought, first "
            f"{differing[0].split()[-1]}: a mirror that changes jars? (files are in {partial})"
        )
    (place / DIGEST).unlink(missing_ok=True)
    shutil.rmtree(place / "jars", ignore_errors=True)
    partial.rename(place / "jars")
    (place / DIGEST).write_text(wanted, encoding="ascii")
    print(f"setup: Hadoop fetched in {time.monotonic() - began:.0f} s", flush=True)
    return True


def lock(root: Path) -> None:
    """Resolve ``pom.xml`` anew and write its lock: a part of ``make lock``. Raises SetupError."""
    if shutil.which("mvn") is None:
        raise SetupError("no mvn on PATH: install the Debian package maven")
    partial = root / ".tools" / "hadoop" / "partial"
    _fetch(root, partial)
    _lock(root).write_text(_sums(partial), encoding="ascii")
    shutil.rmtree(partial)


def _fetch(root: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    argv: list[str | Path] = ["mvn", "--batch-mode", "--quiet", "--file", _pom(root)]
    argv += ["dependency:copy-dependencies", f"-DoutputDirectory={target}"]
    argv += ["-DincludeScope=runtime", *_repository(root)]
    log = root / ".tools" / "setup.log"
    done, output = run(argv, log)
    if not done:
        raise DownloadFailed(
            f"Maven could not fetch Hadoop ({log}):\n{last_lines(output)}\n"
            "Without a network, name a mirror of your site in ~/.m2/settings.xml, or copy a filled "
            "~/.m2/repository here; then run make again."
        )


def _repository(root: Path) -> list[str]:
    """Maven's cache: where the user has it, or in the checkout when the home can't be written."""
    home = os.environ.get("HOME", "/")
    own = root / ".tools" / "maven"
    return [] if os.access(home, os.W_OK) else [f"-Dmaven.repo.local={own}"]


def _sums(directory: Path) -> str:
    """As sha256sum(1) writes them."""
    files = sorted(directory.glob("*.jar"))
    return "".join(f"{_sha256(path)}  {path.name}\n" for path in files)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(root: Path) -> str:
    return hashlib.sha256(_pom(root).read_bytes() + _lock(root).read_bytes()).hexdigest()


def _pom(root: Path) -> Path:
    return root / "envs" / PART / "pom.xml"


def _lock(root: Path) -> Path:
    return root / "envs" / PART / "jars.sha256"
