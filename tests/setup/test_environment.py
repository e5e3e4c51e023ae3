"""``make setup`` makes the environment once, updates it, and repairs what was cut short."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.setup.checkout import ANOTHER, PACKAGE, UV, Checkout

pytestmark = pytest.mark.slow

# A uv that says it has begun, then does nothing for as long as nobody ends it.
SLOW_UV = """#!/bin/sh
case "$*" in
    --version) echo 'uv 99.0.0' ;;
    *sync*) mkdir -p .venv/lib/half-a-package; : > begun; exec sleep 300 ;;
    *) exec "$REAL_UV" "$@" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout", tmp_path / "home")


@pytest.fixture
def slow_uv(tmp_path: Path) -> dict[str, str]:
    """Variables under which set-up takes the slow uv."""
    directory = tmp_path / "slow"
    directory.mkdir()
    (directory / "uv").write_text(SLOW_UV)
    (directory / "uv").chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}", "REAL_UV": str(UV)}


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.02)


def test_second_run_finds_nothing_to_do_and_needs_no_network(checkout: Checkout) -> None:
    first = checkout.setup()
    assert first.returncode == 0, first.stdout
    assert checkout.has(PACKAGE)
    second = checkout.setup(UV_OFFLINE="1", UV_CACHE_DIR=str(checkout.home / "empty"), PATH="/bin")
    assert (second.returncode, second.stdout) == (0, "setup: nothing to do\n")


def test_burstlab_is_found_by_a_plain_path_file(checkout: Checkout) -> None:
    """An import hook in a .pth file would cost every start of `burstlab run`."""
    assert checkout.setup().returncode == 0
    files = list((checkout.root / ".venv").glob("lib/python*/site-packages/*.pth"))
    assert [file.read_text().strip() for file in files] == [str(checkout.root / "src")]


def test_changed_lock_updates_in_place(checkout: Checkout) -> None:
    assert checkout.setup().returncode == 0
    kept = checkout.root / ".venv" / "kept"
    kept.touch()
    checkout.lock(PACKAGE, ANOTHER)
    assert checkout.setup().returncode == 0
    assert checkout.has(ANOTHER)
    assert kept.exists()


def test_moved_checkout_is_repaired(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout.setup().returncode == 0
    checkout.root = checkout.root.rename(tmp_path / "moved")
    assert not checkout.has(PACKAGE)
    assert checkout.setup().returncode == 0
    assert checkout.has(PACKAGE)
    link = checkout.home / ".config" / "snakemake" / "local"
    assert link.resolve() == checkout.root / "profiles" / "local"


def test_killed_set_up_is_made_anew(checkout: Checkout, slow_uv: dict[str, str]) -> None:
    started = checkout.start(**slow_uv)
    wait_for(checkout.root / "begun", started)
    os.killpg(started.pid, signal.SIGKILL)
    started.communicate()
    assert json.loads((checkout.root / ".tools/setup.json").read_text())["state"] == "unfinished"
    again = checkout.setup()
    assert again.returncode == 0, again.stdout
    assert checkout.has(PACKAGE)
    assert not (checkout.root / ".venv/lib/half-a-package").exists()


def test_next_set_up_waits_for_the_tool_a_killed_one_left(
    checkout: Checkout, slow_uv: dict[str, str]
) -> None:
    """uv goes on writing after its parent is gone; nobody may write beside it."""
    started = checkout.start(**slow_uv)
    wait_for(checkout.root / "begun", started)
    started.kill()
    started.wait()
    waiting = checkout.start()
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "setup: waiting for another make setup of this checkout\n"
    os.killpg(started.pid, signal.SIGKILL)  # the tool that was left
    assert waiting.wait(timeout=200) == 0
    assert checkout.has(PACKAGE)
    waiting.stdout.close()
    assert started.stdout is not None
    started.stdout.close()


def test_two_at_once_make_it_once(checkout: Checkout) -> None:
    both = [checkout.start(), checkout.start()]
    told = [process.communicate(timeout=200)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("nothing to do" in text for text in told) == 1, told
    assert checkout.has(PACKAGE)


def test_environment_of_somebody_else_is_not_touched(checkout: Checkout) -> None:
    theirs = checkout.root / ".venv" / "theirs"
    theirs.parent.mkdir()
    theirs.touch()
    done = checkout.setup()
    assert done.returncode == 6
    assert "was not made by make setup" in done.stdout
    assert theirs.exists()


def test_no_network_is_told_and_survived(checkout: Checkout) -> None:
    empty = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(checkout.home / "empty")}
    done = checkout.setup(**empty)
    assert done.returncode == 5
    assert "Without a network" in done.stdout
    assert checkout.setup().returncode == 0
    assert checkout.has(PACKAGE)


def test_tampered_package_is_refused(checkout: Checkout) -> None:
    lock = checkout.root / "envs" / "burstlab" / "requirements.lock"
    digests = [line for line in lock.read_text().splitlines() if "--hash" in line]
    text = lock.read_text()
    for line in digests:
        digest = line.split("sha256:")[1][:64]
        text = text.replace(digest, digest[::-1])
    lock.write_text(text)
    done = checkout.setup(UV_CACHE_DIR=str(checkout.home / "empty"))
    assert done.returncode == 5
    assert "ash mismatch" in done.stdout


def test_home_that_cannot_be_written_is_told(checkout: Checkout) -> None:
    """Set-up goes on, with its cache in the checkout and the profiles by their path."""
    no_home = checkout.home / "file"
    no_home.touch()
    environment = checkout.environment(HOME=str(no_home))
    del environment["UV_CACHE_DIR"]
    done = subprocess.run(
        checkout.command(), cwd=checkout.root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "use snakemake --profile profiles/NAME" in done.stdout
    assert (checkout.root / ".tools" / "cache").is_dir()


@pytest.mark.requires("root", "netns")
def test_checkout_of_another_user_can_be_used_but_not_changed(checkout: Checkout) -> None:
    """As root nothing is read-only by its mode, hence a mount in a name space of its own."""
    assert checkout.setup().returncode == 0
    lock = checkout.root / "envs" / "burstlab" / "requirements.lock"
    read_only = 'mount --bind "$PWD" "$PWD" && mount -o remount,ro,bind "$PWD" && cd "$PWD" && '
    command = ["unshare", "--mount", "sh", "-c", read_only + 'exec "$@"', "sh", *checkout.command()]
    for expected, told in ((0, "nothing to do"), (6, "Read-only file system")):
        done = subprocess.run(
            command,
            cwd=checkout.root,
            env=checkout.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
        )
        assert done.returncode == expected, done.stdout
        assert told in done.stdout
        lock.write_text(lock.read_text() + "# changed\n")


def test_clean_takes_back_what_was_made_and_nothing_else(checkout: Checkout) -> None:
    assert checkout.setup().returncode == 0
    before = {path.name for path in checkout.root.iterdir()} - {".venv", ".tools"}
    command = [*checkout.command()[:4], "clean"]
    done = subprocess.run(command, cwd=checkout.root, env=checkout.environment(), text=True)
    assert done.returncode == 0
    assert {path.name for path in checkout.root.iterdir()} - {".tools"} == before
    assert [path.name for path in (checkout.root / ".tools").iterdir()] == ["setup.lock"]
    assert not (checkout.home / ".config" / "snakemake" / "local").is_symlink()
