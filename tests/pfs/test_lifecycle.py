"""Start, end, stall; and what cannot be started says why in one line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from burstlab.errors import BurstlabError, ConfigurationError
from burstlab.mounts import mounted_at
from burstlab.pfs import command as pfs_command
from burstlab.pfs.emulation import Emulation
from burstlab.pfs.exports import Export
from tests.pfs.emulator import FREE, command, emulated
from tests.polling import until

fuse = pytest.mark.requires("fuse", "burstio")


@fuse
def test_the_mount_proves_that_it_is_emulated(emulator):
    mount = mounted_at(emulator.mount)
    assert (mount.source, mount.type) == ("burstlab-pfs", "fuse.burstlab-pfs")
    assert "default_permissions" in mount.options


@fuse
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_and_unmounts_it_though_files_are_open(tmp_path: Path, number: int):
    with emulated(tmp_path, *FREE) as running:
        file = (running.work / "file").open("w")
        file.write("kept")
        file.flush()
        running.process.send_signal(number)
        assert running.process.wait(10) == 0
        assert mounted_at(running.mount) is None
        with pytest.raises(OSError, match=r"not connected|abort"):
            os.fstat(file.fileno())
        os.close(os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno()))
        assert (running.backing / "file").read_text() == "kept"


@fuse
def test_unmounting_ends_it(tmp_path: Path):
    with emulated(tmp_path, *FREE) as running:
        subprocess.run(["fusermount3", "-u", running.mount], check=True)
        assert running.process.wait(10) == 0


@fuse
def test_a_killed_one_leaves_a_dead_mount_that_a_new_one_names(tmp_path: Path):
    with emulated(tmp_path, *FREE) as running:
        running.process.kill()
        running.process.wait()
        assert mounted_at(running.mount)
        again = refused(running.mount, f"--export=work={running.backing}")
        assert "fuse.burstlab-pfs is mounted there already" in again


@fuse
def test_a_stall_holds_every_client_until_it_is_over(tmp_path: Path):
    with emulated(tmp_path, *FREE) as running:
        (running.work / "file").write_text("content")
        running.stall()
        reader = subprocess.Popen(
            ["stat", "-c", "%s", running.work / "file"], stdout=subprocess.PIPE
        )
        with pytest.raises(subprocess.TimeoutExpired):
            reader.wait(0.5)
        running.go_on()
        assert reader.communicate(timeout=10)[0] == b"7\n"


@fuse
def test_a_stalled_one_can_be_ended(tmp_path: Path):
    with emulated(tmp_path, *FREE) as running:
        running.stall()
        reader = subprocess.Popen(["stat", running.work], stderr=subprocess.DEVNULL, stdout=-3)
        running.process.terminate()
        assert running.process.wait(10) == 0
        reader.wait(10)
        assert mounted_at(running.mount) is None


@fuse
def test_two_side_by_side(tmp_path: Path):
    with emulated(tmp_path / "a", *FREE) as one, emulated(tmp_path / "b", *FREE) as other:
        (one.work / "file").write_text("one")
        assert not (other.work / "file").exists()


@fuse
def test_the_same_by_hand_says_how_to_stop_it(tmp_path: Path):
    for name in ("mount", "backing"):
        (tmp_path / name).mkdir()
    words = [sys.executable, "-m", "burstlab", "lab", "pfs", str(tmp_path / "mount")]
    words += [f"--export=work={tmp_path / 'backing'}"]
    by_hand = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        here = tmp_path / "mount"
        until(lambda: mounted_at(here) or by_hand.poll() is not None, "the mount")
        by_hand.send_signal(signal.SIGINT)
        said, _ = by_hand.communicate(timeout=10)
        assert by_hand.returncode == 0 and mounted_at(tmp_path / "mount") is None
        assert f"stop with Ctrl-C, kill {by_hand.pid} or fusermount3 -u" in said
    finally:
        by_hand.kill()
        subprocess.run(["fusermount3", "-u", "-z", tmp_path / "mount"], capture_output=True)


def refused(*arguments: str | Path) -> str:
    """The one line of an emulator that does not start."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=30)
    assert done.returncode == ConfigurationError.exit_status
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_mount_point_must_be_a_directory(tmp_path: Path):
    said = refused(tmp_path / "absent", f"--export=work={tmp_path}")
    assert f"{tmp_path / 'absent'} is no directory" in said


def test_a_mount_point_is_no_other_mount(tmp_path: Path):
    assert "proc is mounted there already" in refused(Path("/proc"), f"--export=work={tmp_path}")


def test_a_mount_and_its_exports_do_not_lie_in_each_other(tmp_path: Path):
    (tmp_path / "outer/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("outer")
    outer, inner = tmp_path / "outer", tmp_path / "outer/inner"
    assert "hide its own export" in refused(outer, f"--export=work={inner}")
    assert "hide its own export" in refused(outer, f"--export=work={tmp_path / 'link'}")
    assert "lies in its own export" in refused(inner, f"--export=work={tmp_path / 'link'}")


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "fast"])
def test_costs_are_numbers_from_0(tmp_path: Path, value: str):
    words = command(tmp_path, f"--export=work={tmp_path}", f"--bandwidth-mb-s={value}")
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "--bandwidth-mb-s" in done.stderr


def test_an_unusable_device_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pfs_command, "DEVICE", str(tmp_path / "fuse"))
    with pytest.raises(BurstlabError, match=r"fuse can't be used \(No such file"):
        pfs_command.check_fuse()


def test_without_burstio_it_says_what_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "burstio", None)
    with pytest.raises(ConfigurationError, match=r"burstio is not here.*make setup"):
        pfs_command.mount(tmp_path, Emulation(), [])


@fuse
def test_an_export_that_can_not_be_opened_is_told(tmp_path: Path):
    absent = Export("work", tmp_path / "absent")
    with pytest.raises(BurstlabError, match=r"can't be mounted: .*No such file"):
        pfs_command.mount(tmp_path, Emulation(), [absent])
