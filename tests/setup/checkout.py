"""A small checkout of burstlab whose environment holds one package, to set up in earnest."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tools.setup import uvtool

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("Makefile", "README.md", "LICENSE", "tools", "envs/setup", "envs/burstlab")
PACKAGE = "iniconfig"  # pure Python, without dependencies
ANOTHER = "pluggy"
UV = uvtool.find(ROOT) or Path("uv: make setup brings it")


class Checkout:
    """Runs ``make setup`` in a copy, with a home of its own and the user's uv and its cache."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.root, self.home = directory, home
        home.mkdir()
        for name in COPIED:
            self._copy(name)
        self._copy("src/burstlab/__init__.py")
        self._copy("src/burstlab/doctor")
        (directory / "pyproject.toml").write_text(
            re.sub(
                r"\ndependencies = \[.*?\n\]", "", (ROOT / "pyproject.toml").read_text(), flags=re.S
            )
        )
        (directory / "profiles" / "local").mkdir(parents=True)
        self.lock(PACKAGE)

    @property
    def python(self) -> Path:
        return self.root / ".venv" / "bin" / "python"

    def lock(self, *packages: str) -> None:
        """Shorten the true lock to these packages."""
        entries = locked_entries(ROOT / "envs" / "burstlab" / "requirements.lock")
        text = "".join(entries[package] for package in packages)
        (self.root / "envs" / "burstlab" / "requirements.lock").write_text(text)

    def environment(self, **variables: str) -> dict[str, str]:
        """The caller's, but for the home; uv is the one of the checkout the tests run in."""
        cache = os.environ.get("UV_CACHE_DIR") or os.path.expanduser("~/.cache/uv")  # noqa: PTH111
        inherited = {n: v for n, v in os.environ.items() if n not in ("XDG_CONFIG_HOME", "PARTS")}
        own = {"HOME": str(self.home), "UV_CACHE_DIR": cache, "UV_LINK_MODE": "copy"}
        path = f"{UV.parent}:{os.environ['PATH']}"
        return {**inherited, **own, "PATH": path, **variables}

    def setup(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run set-up to its end; stderr goes where stdout goes."""
        return subprocess.run(
            self.command(),
            cwd=self.root,
            env=self.environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
        )

    def start(self, **variables: str) -> subprocess.Popen[str]:
        """Start set-up, to be disturbed; a session of its own."""
        return subprocess.Popen(
            self.command(),
            cwd=self.root,
            env=self.environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def command(self) -> list[str]:
        """As the Makefile has it, with no Debian packages asked for."""
        return ["/usr/bin/python3", "-B", "-m", "tools.setup", "--parts", ""]

    def has(self, package: str) -> bool:
        """Whether the environment can import a package and burstlab."""
        program = f"import burstlab, {package}"
        command = [str(self.python), "-c", program]
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0

    def _copy(self, name: str) -> None:
        source, target = ROOT / name, self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def locked_entries(lock: Path) -> dict[str, str]:
    """Name -> the lines of that package in a lock."""
    entries: dict[str, str] = {}
    name = ""
    for line in lock.read_text().splitlines(keepends=True):
        if line[:1].isalnum():
            name = re.split(r"[=\[ ]", line, maxsplit=1)[0]
            entries[name] = ""
        if name:
            entries[name] += line
    return entries
