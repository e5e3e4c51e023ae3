"""What is told from gfls, the spool and the logs; lines as Gfarm 2.7.20 wrote them."""

from pathlib import Path

import pytest

from burstlab.errors import StorageError
from burstlab.storage.gfarm.integrity import (
    File,
    Replica,
    differences,
    losses,
    parse_listing,
)

LISTING = b"""\
         3 drwxr-xr-x 3 root     gfarmadm          0 Nov 21 04:19 a
         5 -rw-r--r-- 1 root     gfarmadm          1 Nov 21 04:19 top

/a:
         4 drwxr-xr-x 2 root     gfarmadm          0 Nov 21 04:19 b c
         8 lrwxrwxrwx 1 root     gfarmadm          0 Nov 21 03:54 link -> x y

/a/b c:
         6 -rw-r--r-- 1 root     gfarmadm 5000000000 Nov 21  2025 f 1
         9 -rwxr-xr-x 2 a_long_user_name gfarmadm      12 Jan  1 00:00 \xff:

/zempty:
"""


def test_regular_files_are_found_with_directory_inode_and_size() -> None:
    assert parse_listing(LISTING) == [
        File("/top", 5, 1),
        File("/a/b c/f 1", 6, 5_000_000_000),
        File("/a/b c/\udcff:", 9, 12),
    ]


def test_a_line_that_is_not_understood_is_no_file_passed_over() -> None:
    with pytest.raises(StorageError, match="not understood"):
        parse_listing(b"         5 -rw-r--r-- 1 root gfarmadm ? Nov 21 04:19 top\n")


def test_nothing_is_said_of_files_that_are_whole() -> None:
    files = [File("/a", 3, 10), File("/linked", 3, 10), File("/empty", 4, 0)]
    assert differences(files, [Replica(3, 1, 10), Replica(4, 0, 0), Replica(99, 0, 7)]) == []


def test_a_file_written_past_a_dead_gfsd_is_told() -> None:
    assert differences([File("/open", 6, 0)], [Replica(6, 0, 10_000)]) == [
        "/open: 0 bytes by metadata, 10000 on disk"
    ]


def test_a_file_on_no_disk_is_told() -> None:
    assert differences([File("/a", 3, 0)], [Replica(4, 0, 0)]) == ["/a: no host has its data"]


def test_the_newest_generation_counts_and_all_its_replicas() -> None:
    file = [File("/a", 3, 10)]
    assert differences(file, [Replica(3, 1, 4), Replica(3, 2, 10)]) == []
    assert differences(file, [Replica(3, 2, 10), Replica(3, 1, 4)]) == []
    assert differences(file, [Replica(3, 2, 10), Replica(3, 2, 10)]) == []
    assert differences(file, [Replica(3, 2, 10), Replica(3, 2, 4)]) == [
        "/a: 10 bytes by metadata, 4, 10 on disk"
    ]


LOGS = {
    "gfarm2fs": (
        "gfarm2fs: <err> [2000033] <RELEASE:gfs_pio_close>[/s/mnt]/work/big: no space\n"
        "gfarm2fs: <err> [2000011] <MKDIR:gfs_mkdir>[/s/mnt]/work/x: invalid argument\n",
        ["data lost: /work/big: no space"],
    ),
    "gfmd": (
        "gfmd: <warning> [1004354] gfsd on root@localhost exited without closing write-opened "
        "file (pid:1 fd:1). inode 6:0 might be modified, run gfspooldigest\n"
        "gfmd: <notice> [1000286] (root@localhost) disconnected\n",
        ["data lost: gfsd on root@localhost exited without closing write-opened file"],
    ),
}


@pytest.mark.parametrize("program", LOGS)
def test_logs_tell_what_was_written_in_vain(program: str, tmp_path: Path) -> None:
    text, told = LOGS[program]
    (tmp_path / f"{program}.log").write_text(text * 2)
    assert losses(program, tmp_path) == told


def test_no_log_tells_nothing(tmp_path: Path) -> None:
    assert losses("gfmd", tmp_path) == []
