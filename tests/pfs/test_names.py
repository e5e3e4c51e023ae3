"""Names, attributes, permissions."""

import ctypes
import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.pfs.emulator import Emulator
from tests.polling import until

pytestmark = pytest.mark.requires("fuse", "burstio")
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2  # rename(2)


def refusal(function, *arguments, **more) -> str:
    with pytest.raises(OSError) as caught:
        function(*arguments, **more)
    return errno.errorcode[caught.value.errno]


def test_a_large_directory_is_listed_whole_with_attributes(work):
    for number in range(3000):
        (work / f"file{number}").touch()
    os.truncate(work / "file7", 7)
    with os.scandir(work) as entries:
        sizes = {entry.name: entry.stat().st_size for entry in entries}
    assert len(sizes) == 3000 and sizes["file7"] == 7
    assert {".", ".."} <= set(subprocess.check_output(["ls", "-a", work], text=True).split())


def test_a_file_is_usable_after_unlink_and_its_directory_can_go(work):
    inner = work / "inner"
    inner.mkdir()
    with (inner / "file").open("w+b") as file:
        file.write(b"content")
        file.flush()
        (inner / "file").unlink()
        assert list(inner.iterdir()) == []
        os.ftruncate(file.fileno(), 4)
        os.fchmod(file.fileno(), 0o640)
        os.utime(file.fileno(), (1, 2))
        found = os.fstat(file.fileno())
        assert (found.st_size, stat.S_IMODE(found.st_mode), found.st_mtime) == (4, 0o640, 2)
        assert found.st_nlink == 0
        assert Path(f"/proc/self/fd/{file.fileno()}").read_bytes() == b"cont"
        inner.rmdir()
        file.write(b"more")
        file.seek(0)
        assert file.read() == b"cont\0\0\0more"


def test_unlinked_files_give_their_space_back_at_the_last_close(emulator, work):
    descriptors = Path(f"/proc/{emulator.process.pid}/fd")

    def held() -> bool:
        done = subprocess.run(["ls", "-l", descriptors], capture_output=True, text=True)
        return "(deleted)" in done.stdout

    with (work / "file").open("w") as file:
        (work / "file").unlink()
        assert held()
        file.write("x")
    until(lambda: not held(), "the descriptors of the unlinked file to be closed")


def test_rename_over_an_open_file(work):
    (work / "old").write_text("old")
    (work / "new").write_text("new")
    with (work / "old").open() as reader:
        (work / "new").rename(work / "old")
        assert reader.read() == "old" and (work / "old").read_text() == "new"
    assert [path.name for path in work.iterdir()] == ["old"]


def test_the_flags_of_rename(work):
    libc = ctypes.CDLL(None, use_errno=True)

    def rename(flags: int) -> int:
        names = os.fsencode(work / "a"), os.fsencode(work / "b")
        result = libc.renameat2(-1, names[0], -1, names[1], flags)
        return ctypes.get_errno() if result else 0

    (work / "a").write_text("a")
    (work / "b").write_text("b")
    assert rename(RENAME_NOREPLACE) == errno.EEXIST
    assert rename(RENAME_EXCHANGE) == 0
    assert (work / "a").read_text() == "b" and (work / "b").read_text() == "a"


def test_links_modes_times_and_owners(work):
    (work / "file").touch()
    (work / "link").symlink_to("file")
    os.utime(work / "link", ns=(3, 4), follow_symlinks=False)
    assert (work / "link").lstat().st_mtime_ns == 4
    (work / "file").chmod(0o4751)
    assert stat.S_IMODE((work / "file").stat().st_mode) == 0o4751
    os.utime(work / "file", ns=(5, 6))
    subprocess.run(["touch", "-a", "-d", "@77", work / "file"], check=True)
    found = (work / "file").stat()
    assert (found.st_atime_ns, found.st_mtime_ns) == (77 * 10**9, 6)
    os.mkfifo(work / "fifo")
    assert stat.S_ISFIFO((work / "fifo").stat().st_mode)


def test_extended_attributes(work):
    (work / "file").touch()
    os.setxattr(work / "file", "user.burstlab", b"\0value")
    assert os.listxattr(work / "file") == ["user.burstlab"]
    assert os.getxattr(work / "file", "user.burstlab") == b"\0value"
    os.removexattr(work / "file", "user.burstlab")
    assert refusal(os.getxattr, work / "file", "user.burstlab") == "ENODATA"


def test_a_read_only_export_refuses_every_change(emulator):
    (emulator.sealed / "file").write_text("sealed")
    path = emulator.mount / "sealed/file"
    assert path.read_text() == "sealed"
    for change in (
        lambda: path.write_text("x"),
        lambda: os.open(path, os.O_RDWR),
        lambda: os.open(path, os.O_RDONLY | os.O_TRUNC),
        path.unlink,
        lambda: path.rename(path.with_name("other")),
        lambda: path.chmod(0o600),
        lambda: os.utime(path),
        lambda: os.truncate(path, 0),
        lambda: os.setxattr(path, "user.x", b""),
        lambda: os.link(path, path.with_name("other")),
        lambda: path.with_name("new").touch(),
        lambda: path.with_name("new").mkdir(),
        lambda: path.with_name("new").symlink_to("file"),
    ):
        assert refusal(change) == "EROFS"
    assert [p.name for p in emulator.sealed.iterdir()] == ["file"]
    assert (emulator.sealed / "file").read_text() == "sealed"


def test_the_mount_point_itself_shows_the_exports_and_does_not_change(emulator):
    assert sorted(path.name for path in emulator.mount.iterdir()) == ["sealed", "work"]
    refused = "EACCES" if os.geteuid() else "EROFS"  # the kernel looks at the mode first
    assert refusal((emulator.mount / "new").mkdir) == refused
    assert refusal(emulator.work.rmdir) == refused
    assert refusal(os.rename, emulator.work, emulator.mount / "other") == refused
    assert os.statvfs(emulator.mount).f_blocks == os.statvfs(emulator.backing).f_blocks


def let_through(directory: Path) -> None:
    """The test's own directories are closed to other users."""
    for parent in (directory, *directory.parents[:3]):
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o011)


ACT = """
import os, sys
path, = sys.argv[1:]
os.umask(0o027)
os.mkdir(path + "/theirs")
open(path + "/theirs/file", "w").close()
os.symlink("x", path + "/theirs/link")
for change in (lambda: open(path + "/private"), lambda: os.mkdir(path + "/closed/new")):
    try:
        change()
        sys.exit("allowed")
    except PermissionError:
        pass
"""


@pytest.mark.requires("fuse", "burstio", "root")
def test_several_users_with_their_own_files_and_permissions(emulator: Emulator, work: Path):
    work.chmod(0o777)
    (work / "private").touch(0o600)
    (work / "closed").mkdir(0o755)
    let_through(emulator.mount.parent)
    who = {"user": 54321, "group": 54322, "extra_groups": []}
    done = subprocess.run(["/usr/bin/python3", "-c", ACT, work], **who, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    for name, mode in (("theirs", 0o750), ("theirs/file", 0o640), ("theirs/link", 0o777)):
        found = (work / name).lstat()
        assert (found.st_uid, found.st_gid) == (54321, 54322)
        assert stat.S_IMODE(found.st_mode) == mode
        assert (emulator.backing / work.name / name).lstat().st_uid == 54321


@pytest.mark.requires("fuse", "burstio", "root")
def test_a_directory_of_a_group_hands_its_group_on(emulator: Emulator, work: Path):
    let_through(emulator.mount.parent)
    os.chown(work, 0, 54323)
    work.chmod(0o2777)
    script = "import os, sys; os.close(os.open(sys.argv[1], os.O_CREAT)); os.mkdir(sys.argv[2])"
    command = ["/usr/bin/python3", "-c", script, work / "file", work / "directory"]
    who = {"user": 54321, "group": 54322, "extra_groups": []}
    subprocess.run(command, cwd=work, check=True, **who)
    assert (work / "file").stat().st_gid == (work / "directory").stat().st_gid == 54323
