"""The check that tests leave nothing behind finds what they leave, ends it, and blames the test."""

import fcntl
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from burstlab.mounts import mounted_at
from tests import leaks
from tests.polling import until

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def place(tmp_path: Path) -> leaks.Place:
    (tmp_path / "test").mkdir()
    return leaks.Place(tmp_path, tmp_path / "test")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "PATIENCE_S", 0.2)


def orphan(directory: Path, *, cwd: Path, environment: dict[str, str]) -> int:
    """A process of a session of its own whose parent has ended; its pid."""
    program = "setsid sleep 60 </dev/null >/dev/null 2>&1 & echo $!"
    done = subprocess.run(
        ["sh", "-c", program], cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True
    )
    pid = int(done.stdout)
    begun = Path(f"/proc/{pid}/cmdline")  # which is empty while a program takes another's place
    until(lambda: begun.read_bytes() == b"sleep\x0060\x00", "the shell's child sleeps")
    return pid


@pytest.mark.parametrize("sign", ["cwd", "environment"])
def test_process_is_found_and_ended(place: leaks.Place, sign: str) -> None:
    known = leaks.pids()
    before = leaks.look(place, known)
    variables = {"BURSTLAB_STATE": f"{place.run}/state"} if sign == "environment" else {}
    pid = orphan(place.run, cwd=place.run if sign == "cwd" else Path("/"), environment=variables)
    (left,) = leaks.leaked(before, place, known)
    assert left == f"process {pid}: sleep 60"
    assert leaks.leaked(before, place, known) == []


def test_cell_that_hides_its_place_is_told_where_nobody_else_works(
    place: leaks.Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told, but never ended: should somebody else work here after all, it is theirs."""
    monkeypatch.setattr(leaks, "ALONE", False)
    known = leaks.pids()
    before = leaks.look(place, known)
    variables = {"BURSTLAB_CELL": "0101-000000-abcdef"}
    pid = orphan(place.run, cwd=Path("/"), environment=variables)
    try:
        assert leaks.leaked(before, place, known) == []
        monkeypatch.setattr(leaks, "ALONE", True)
        assert f"process {pid}: sleep 60" in leaks.leaked(before, place, known)
        os.kill(pid, 0)
    finally:
        os.kill(pid, 9)


@pytest.mark.requires("root")
def test_mount_is_found_and_unmounted(place: leaks.Place, tmp_path: Path) -> None:
    known = leaks.pids()
    before = leaks.look(place, known)
    point = tmp_path / "point"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
    assert leaks.leaked(before, place, known) == [f"mount {point}"]
    assert mounted_at(point) is None


def test_scratch_and_leases_are_found(place: leaks.Place) -> None:
    known = leaks.pids()
    before = leaks.look(place, known)
    scratch = place.run / "test" / "scratch" / "burstlab-0101-000000-abcdef"
    scratch.mkdir(parents=True)
    (place.run / "state").mkdir()
    lease = place.run / "state" / "0101-000000-abcdef.lease"
    lease.touch()
    assert leaks.leaked(before, place, known) == [f"left over: {lease}", f"left over: {scratch}"]
    scratch.rmdir()
    lease.unlink()


def run_tests(directory: Path, text: str, *options: str, **variables: str) -> str:
    """What pytest prints for a file of tests under the conftest of this directory."""
    (directory / "conftest.py").write_text("from tests.conftest import *\n")
    (directory / "test_it.py").write_text(textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {name: told for name, told in environment.items() if "XDIST" not in name}
    # Other workers' tests run beside this one: the machine is its own only where a test says so.
    environment |= {"BURSTLAB_REQUIRE_ALL": "0", "CI": "false"} | variables
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--rootdir=."]
    return subprocess.run(
        [*command, *options, "test_it.py"],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    ).stdout


@pytest.mark.parametrize("options", [(), pytest.param(("-n2",), marks=pytest.mark.slow)])
@pytest.mark.slow
def test_the_test_that_leaks_is_named(tmp_path: Path, options: tuple[str, ...]) -> None:
    told = run_tests(
        tmp_path,
        """
        def test_clean(): pass
        def test_leaky(tmp_path):
            (tmp_path / "burstlab-0101-000000-abcdef").mkdir()
        def test_after(): pass
        """,
        *options,
    )
    assert "test_leaky left behind:" in told
    assert "3 passed, 1 error" in told


def test_module_may_hold_things_while_its_tests_run(tmp_path: Path) -> None:
    told = run_tests(
        tmp_path,
        """
        import subprocess, pytest
        @pytest.fixture(scope="module")
        def daemon():
            with subprocess.Popen(["sleep", "60"]) as daemon:
                yield daemon
                daemon.kill()
        def test_one(daemon): pass
        def test_two(daemon): pass
        """,
    )
    assert "2 passed in" in told


@pytest.mark.slow
def test_what_no_worker_can_tell_is_told_at_the_end(tmp_path: Path) -> None:
    """Where this machine is ours alone, and tests run side by side."""
    told = run_tests(
        tmp_path,
        """
        import os, subprocess
        def test_it():
            hidden = {"PATH": os.environ["PATH"], "BURSTLAB_CELL": "0101-000000-abcdef"}
            subprocess.Popen(["setsid", "-f", "sleep", "60"], env=hidden, cwd="/").wait()
        """,
        "-n2",
        CI="true",
    )
    assert "1 passed" in told
    (pid,) = re.findall(r"ERROR: some test left behind: process (\d+): sleep 60\n", told)
    os.kill(int(pid), 9)


def test_run_that_lives_is_not_swept_but_a_dead_one_is(tmp_path: Path) -> None:
    """Whatever name space of pids the sweeper is in."""
    live, dead, starting = (tmp_path / f"bt-{name}" for name in ("live", "dead", "starting"))
    for directory in (live, dead, starting):
        directory.mkdir()
    (dead / "lock").touch()
    with (live / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run_tests(tmp_path, "def test_it(): pass\n", TMPDIR=str(tmp_path))
    assert sorted(path.name for path in tmp_path.glob("bt-*")) == ["bt-live", "bt-starting"]


SKIPPING = """
import pytest
@pytest.mark.requires("gone")
def test_needs_it(): pass
@pytest.mark.requires("luxury")
def test_likes_it(): pass
def test_by_itself(): pytest.skip("not today")
"""
PARTS = """
from burstlab.doctor.capabilities import CAPABILITIES, Capability
CAPABILITIES["gone"] = Capability("", lambda: "it is gone", "")
CAPABILITIES["luxury"] = Capability("", lambda: "too dear", "", optional="nice to have")
"""


@pytest.mark.parametrize("options", [(), pytest.param(("-n2",), marks=pytest.mark.slow)])
def test_skips_are_told(tmp_path: Path, options: tuple[str, ...]) -> None:
    told = run_tests(tmp_path, PARTS + SKIPPING, *options)
    assert "3 skipped" in told
    assert "1 tests  gone: it is gone\n" in told
    assert "1 tests  luxury: too dear (optional: nice to have)\n" in told
    assert "1 tests  skipped by itself: Skipped: not today\n" in told


def test_skips_are_errors_where_all_is_required(tmp_path: Path) -> None:
    told = run_tests(tmp_path, PARTS + SKIPPING, BURSTLAB_REQUIRE_ALL="1")
    assert "1 failed, 1 skipped" in told
    assert "1 error in" in told
    assert "a required part is missing: gone: it is gone" in told
    assert "nothing may skip by itself: Skipped: not today" in told


def test_unknown_part_is_refused(tmp_path: Path) -> None:
    told = run_tests(
        tmp_path,
        """
        import pytest
        @pytest.mark.requires("fuze")
        def test_it(): pass
        """,
    )
    assert "requires('fuze'): no such part (there are: root, fuse," in told
