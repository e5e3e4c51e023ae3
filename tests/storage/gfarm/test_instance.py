"""One Gfarm from start to stop, on the real daemons."""

import mmap
import os
import stat
import subprocess
from pathlib import Path

import pytest

from burstlab.doctor.environments import load
from burstlab.errors import NodeError
from burstlab.mounts import mounted_at
from burstlab.storage.gfarm.programs import PACKAGES
from tests.requirements import ROOT
from tests.storage.gfarm.conftest import Prepare, Running, prepare

pytestmark = pytest.mark.requires("gfarm")


def test_files_are_seen_on_the_mount_and_lie_in_this_cells_spool(gfarm: Running) -> None:
    assert list(gfarm.mount.iterdir()) == []
    (gfarm.mount / "a").mkdir()
    (gfarm.mount / "a" / "file").write_bytes(b"x" * 5000)
    (gfarm.mount / "empty").touch()
    gfarm.storage.drain()
    spool = gfarm.directory / "spool"
    assert sorted(p.stat().st_size for p in spool.rglob("*") if p.is_file()) == [0, 5000]
    assert gfarm.wrong() == []
    assert gfarm.storage.verify() == []


def test_the_key_is_private_and_not_in_the_home_directory(
    tmp_path: Path, start: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    gfarm = start()
    assert stat.S_IMODE((gfarm.directory / "key").stat().st_mode) == 0o600
    assert list(home.iterdir()) == []


def test_the_key_lives_a_little_longer_than_the_cell(tmp_path: Path) -> None:
    limited = prepare(tmp_path, time_limit_s=100)
    try:
        limited.storage.start()
        expires_s = int((limited.directory / "key").read_text().split()[0], 16)
        started_s = (limited.directory / "key").stat().st_mtime
        assert 100 + 3600 - 5 < expires_s - started_s < 100 + 3600 + 5
    finally:
        limited.take_down()


def test_two_at_once_know_nothing_of_each_other(start: Prepare) -> None:
    first, second = start(), start()
    (first.mount / "file").write_text("first")
    (second.mount / "file").write_text("second")
    assert (first.mount / "file").read_text() == "first"
    assert second.storage.verify() == first.storage.verify() == []
    first.storage.stop()
    assert (second.mount / "file").read_text() == "second"
    assert second.wrong() == []


def test_many_changed_files_are_all_accounted_for(gfarm: Running) -> None:
    for number in range(100):
        directory = gfarm.mount / f"d{number % 7}"
        directory.mkdir(exist_ok=True)
        (directory / f"f {number}").write_bytes(b"x" * number)
    for number in range(0, 100, 3):
        (gfarm.mount / f"d{number % 7}" / f"f {number}").write_bytes(b"again" * number)
    for number in range(1, 100, 3):
        (gfarm.mount / f"d{number % 7}" / f"f {number}").unlink()
    (gfarm.mount / "d0").rename(gfarm.mount / "renamed")
    (gfarm.mount / "linked").hardlink_to(gfarm.mount / "d2" / "f 2")
    (gfarm.mount / "dangling").symlink_to("nowhere")
    (gfarm.mount / "odd\nname: 1").write_text("x")
    assert gfarm.storage.verify() == []


def test_shared_mappings_work_where_the_workload_needs_them(start: Prepare) -> None:
    path = start(needs=frozenset({"mmap"})).mount / "mapped"
    path.write_bytes(bytes(100_000))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[5000:5003] = b"abc"
    assert path.read_bytes()[4999:5004] == b"\0abc\0"


def test_it_says_what_it_is(gfarm: Running) -> None:
    told = gfarm.storage.describe()
    assert told["type"] == "fuse.gfarm2fs"
    assert told["gfarm2fs_options"] == "direct_io"
    assert str(told["version"])[0].isdigit()


def test_gfarms_own_tools_take_paths_of_the_mount(gfarm: Running) -> None:
    (gfarm.mount / "file").touch()
    said = subprocess.run(
        ["gfwhere", gfarm.mount / "file"],
        env={**os.environ, "GFARM_CONFIG_FILE": str(gfarm.directory / "gfarm2.conf")},
        capture_output=True,
        text=True,
    )
    assert said.stdout.split() == ["localhost"]


def test_stopping_twice_or_before_the_start_is_harmless(tmp_path: Path, gfarm: Running) -> None:
    gfarm.storage.stop()
    gfarm.storage.stop()
    assert mounted_at(gfarm.mount) is None
    directory = tmp_path / "never"
    directory.mkdir()
    never = prepare(directory)
    never.storage.stop()
    never.take_down()


def test_a_failed_start_says_which_daemon_said_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = prepare(tmp_path)
    monkeypatch.setattr(
        "burstlab.storage.gfarm.configuration.metadata_server", lambda instance: "nonsense 1\n"
    )
    try:
        with pytest.raises(NodeError, match=r"gfmd ended at its start .*unknown keyword"):
            running.storage.start()
    finally:
        running.take_down()


def test_virtual_nodes_of_one_host_are_refused_with_the_reason(tmp_path: Path) -> None:
    running = prepare(tmp_path, nodes=3)
    try:
        assert running.storage.unavailable() == (
            "Gfarm needs one file system node per host: 3 virtual nodes share one host"
        )
    finally:
        running.take_down()


def test_missing_programs_are_named_with_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "burstlab.storage.gfarm.programs.find_command",
        lambda name: None if name in ("gfmd", "gfwhere") else f"/usr/bin/{name}",
    )
    running = prepare(tmp_path)
    try:
        why = running.storage.unavailable()
        assert why is not None
        assert "gfmd, gfwhere not found" in why
        assert "gfmd gfarm-client" in why
    finally:
        running.take_down()


def test_a_closed_fuse_device_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("burstlab.doctor.capabilities.FUSE_DEVICE", tmp_path / "fuse")
    running = prepare(tmp_path)
    try:
        assert "can't be opened" in (running.storage.unavailable() or "")
    finally:
        running.take_down()


def test_the_environment_lists_the_programs_that_are_used() -> None:
    listed = {command.name: command.package for command in load(ROOT / "envs")["gfarm"].commands}
    assert PACKAGES.items() <= listed.items()
