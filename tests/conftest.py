"""For all tests: what they need, private directories, and that they leave nothing behind."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import pytest
from hypothesis import settings

from burstlab.mounts import mounts_below
from tests import leaks
from tests.requirements import Requirements

_PREFIX = "bt-"  # short: sockets live below it, and their names have 107 bytes
_private = pytest.StashKey[Path]()
_lock = pytest.StashKey[TextIO]()
_failed = pytest.StashKey[bool]()
_before = pytest.StashKey[tuple[leaks.Inventory, frozenset[int]]]()
_left = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Scratch and leases of this run are nobody else's; each worker of ``-n`` is a run."""
    config.pluginmanager.register(Requirements(), "requirements")
    settings.register_profile("burstlab", deadline=None, derandomize=leaks.CI)
    settings.load_profile("burstlab")
    _sweep_dead_runs(Path(tempfile.gettempdir()))
    if config.getoption("numprocesses", None):
        return  # the workers run the tests
    if hasattr(config, "workerinput"):
        config.option.basetemp = None  # below the private directory, not where -n wants it
    private = Path(tempfile.mkdtemp(prefix=_PREFIX))
    config.stash[_lock] = (private / "lock").open("w")
    fcntl.flock(config.stash[_lock], fcntl.LOCK_EX)  # says that this run lives
    private.chmod(0o711)  # jobs of other users pass through
    (private / "state").mkdir(mode=0o700)
    config.stash[_private] = private
    os.environ["BURSTLAB_STATE"] = str(private / "state")
    os.environ["TMPDIR"] = tempfile.tempdir = str(private)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take the directory away, but keep what failed tests wrote until the next run."""
    if _private not in config.stash:
        return
    private = config.stash[_private]
    tempfile.tempdir = None
    config.stash[_lock].close()
    if not config.stash.get(_failed, False) and not mounts_below(private):
        shutil.rmtree(private)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Workers can't tell each other's processes from strangers', so who starts them looks."""
    if leaks.ALONE and _private not in session.config.stash:
        known = leaks.pids()
        session.config.stash[_before] = leaks.look(leaks.Place(_nowhere()), known), known


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    stash = session.config.stash
    stash[_failed] = exitstatus == pytest.ExitCode.TESTS_FAILED
    if _before in stash:
        before, known = stash[_before]
        if left := leaks.leaked(before, leaks.Place(_nowhere()), known):
            stash[_left] = left
            session.exitstatus = leaks.LEFT_BEHIND


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if exitstatus == pytest.ExitCode.TESTS_FAILED:
        where = config.stash.get(_private, Path(tempfile.gettempdir(), f"{_PREFIX}*"))
        terminalreporter.line(f"files of this run, until the next one: {where}")
    for what in config.stash.get(_left, []):
        terminalreporter.line(f"ERROR: some test left behind: {what}")


@pytest.fixture(scope="module", autouse=True)
def module_leaves_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails the last test of a module whose fixtures left something."""
    yield from _leaves_nothing(request, leaks.Place(request.config.stash[_private]))


@pytest.fixture(autouse=True)
def test_leaves_nothing(
    request: pytest.FixtureRequest, module_leaves_nothing: None
) -> Iterator[None]:
    """Fails a test that left something, by its name."""
    own = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield from _leaves_nothing(request, leaks.Place(request.config.stash[_private], own))


def _leaves_nothing(request: pytest.FixtureRequest, place: leaks.Place) -> Iterator[None]:
    known = leaks.pids()
    before = leaks.look(place, known)
    yield
    if left := leaks.leaked(before, place, known):
        pytest.fail(f"{request.node.nodeid} left behind:\n  " + "\n  ".join(left), pytrace=False)


def _nowhere() -> Path:
    return Path(tempfile.gettempdir(), f"{_PREFIX}nowhere")


def _sweep_dead_runs(directory: Path) -> None:
    """Remove what runs left that failed or were killed; never a live one's, nor through a mount."""
    for path in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError), (path / "lock").open() as lock:  # not ours, or not yet there
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not mounts_below(path):
                shutil.rmtree(path)
