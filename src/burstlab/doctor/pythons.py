"""Python environments of their own, for workloads whose packages do not go with burstlab's.

``make setup`` makes them from ``envs/NAME/requirements.lock``. Elsewhere (conda, modules) it is the
``python3`` on PATH that has the packages. Standard library only: ``make setup`` reads this before
anything else is there.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FINISHED = "burstlab-finished"  # in an environment that is whole
PATIENCE_S = 60
NAMED = re.compile(r"^[A-Za-z0-9][\w.-]*", re.MULTILINE)


def directory(root: Path, name: str) -> Path:
    """Where the environment of ``envs/NAME`` is."""
    return root / ".tools" / "python" / name


def python(name: str, root: Path = ROOT) -> str | None:
    """The Python of ``envs/NAME``: its own environment's, else the one on PATH; None: neither."""
    own = directory(root, name)
    return str(own / "bin" / "python") if (own / FINISHED).exists() else shutil.which("python3")


def problem(name: str, root: Path = ROOT) -> str | None:
    """Why the Python packages of ``envs/NAME`` can't be used here, or None."""
    lists = root / "envs" / name / "requirements.in"
    wanted = NAMED.findall(lists.read_text(encoding="utf-8"))
    found = python(name, root)
    if found is None:
        return "python3 is missing"
    done = _ask(found, "[m.version(name) for name in sys.argv[1:]]", *wanted)
    if done.returncode == 0:
        return None
    told = done.stderr.strip().rpartition("\n")[2].rpartition(": ")[2].split(" ")[-1]
    return f"{found} has no package {told}" if told in wanted else f"{found} does not run: {told}"


def describe(name: str) -> dict[str, object]:
    """Path and packages with their versions of an environment that is there."""
    found = python(name)
    assert found is not None
    told = _ask(found, "print(json.dumps({d.name: d.version for d in m.distributions()}))")
    return {"path": found, "packages": json.loads(told.stdout)}


def _ask(interpreter: str, statement: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = f"import json, sys, importlib.metadata as m; {statement}"
    return subprocess.run(
        [interpreter, "-I", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
