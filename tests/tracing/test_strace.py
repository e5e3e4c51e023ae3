"""Lines that strace 6.1 has printed, and what they mean."""

import subprocess
from pathlib import Path

import pytest

from burstlab.tracing.counting import Counts, Places
from burstlab.tracing.strace import (
    Became,
    Ended,
    Event,
    Started,
    Transfer,
    Unseen,
    command,
    events,
    plain,
)


def seen(text: str) -> list[Event]:
    return list(events(f"{line}\n" for line in text.splitlines()))


def test_the_workload_is_stopped_at_calls_of_interest_only() -> None:
    assert "--seccomp-bpf" in command("lines", ["true"])


def test_a_transfer_has_its_file_and_its_size() -> None:
    assert seen('7 read(3</a/b>, ""..., 4096) = 832') == [Transfer(7, "read", "/a/b", 832)]
    assert seen('7     pwrite64(3</a>, ""..., 9, 0)     = 9') == [Transfer(7, "written", "/a", 9)]
    assert seen("7 preadv2(3</a>(deleted), 0x7f93, 2, 0, 0) = 30") == [
        Transfer(7, "read", "/a", 30)
    ]
    assert seen('7 write(1<pipe:[12]>, ""..., 3) = 3') == [Transfer(7, "written", "pipe:[12]", 3)]


def test_a_copy_reads_one_file_and_writes_another() -> None:
    read, written = Transfer(7, "read", "/from", 100), Transfer(7, "written", "/to", 100)
    assert seen("7 copy_file_range(3</from>, NULL, 4</to>, NULL, 9223, 0) = 100") == [read, written]
    assert seen("7 sendfile(5</to>, 3</from>, 0x7ffc, 100) = 100") == [read, written]
    assert seen("7 splice(5</from>, NULL, 3</to>, NULL, 100, 0) = 100") == [read, written]


def test_calls_that_failed_are_none() -> None:
    assert seen("7 read(3</a>, 0x7f, 1) = -1 EIO (Input/output error)") == []
    assert seen("7 read(99, 0x7f, 1) = -1 EBADF (Bad file descriptor)") == []
    assert seen('7 execve("/no/cp", 0x7f, 0x7f) = -1 ENOENT (No such file or directory)') == []
    assert seen("7 read(3</a>,  <unfinished ...>) = ?") == []


def test_a_call_in_two_lines_is_one() -> None:
    told = """\
1 read(3</a>,  <unfinished ...>
2 read(4</b>,  <unfinished ...>
1 <... read resumed>""..., 4096)    = 18
2 <... read resumed>"", 4096)       = 0"""
    assert seen(told) == [Transfer(1, "read", "/a", 18), Transfer(2, "read", "/b", 0)]


def test_threads_processes_and_programs() -> None:
    told = """\
5 vfork( <unfinished ...>
6 execve("/usr/bin/cp", 0x7f93, 0x7fff <unfinished ...>
5 <... vfork resumed>)              = 6
6 <... execve resumed>)             = 0
5 clone3({flags=CLONE_VM|CLONE_THREAD, stack=0x7f} => {parent_tid=[8]}, 88) = 8
8 execve("/bin/true", [...], 0x7f /* 35 vars */ <pid changed to 5 ...>
5 +++ superseded by execve in pid 8 +++
5 <... execve resumed>)             = 9
6 +++ exited with 0 +++
5 +++ killed by SIGKILL +++"""
    assert seen(told) == [
        Started(5, 6, False),
        Became(6, "cp"),
        Started(5, 8, True),
        Became(5, "true"),
        Ended(6),
        Ended(5),
    ]


def test_what_moves_bytes_without_a_call_is_told() -> None:
    mapped = "7 mmap(NULL, 5000, PROT_READ, MAP_SHARED, 3</a>(deleted), 0) = 0x7f9399f18000"
    assert seen(mapped) == [Unseen(7, "mmap", "/a")]
    assert seen("7 mmap(NULL, 81, PROT_READ, MAP_ANONYMOUS, -1, 0) = 0x7f1506476000") == []
    assert seen("7 io_uring_setup(8, {flags=0}) = 3") == [Unseen(7, "io_uring", "")]


@pytest.mark.parametrize(
    "name", ["a b", "d <x>", "new\nline", "back\\slash", "é", 'x") = 5', "1<2"]
)
@pytest.mark.requires("trace")
def test_any_name_of_a_file_is_read_back(tmp_path: Path, name: str) -> None:
    path, lines = tmp_path / name, tmp_path / "lines"
    path.write_bytes(bytes(1234))
    subprocess.run(command(str(lines), ["cat", str(path)]), check=True, capture_output=True)
    with lines.open(encoding="latin-1", newline="\n") as opened:
        found = [event for event in events(opened) if isinstance(event, Transfer)]
    assert 1234 in [event.size_bytes for event in found if plain(event.path) == str(path)]


def table(told: str, **places: str) -> list[list[object]]:
    counts = Counts(Places(places))
    for event in seen(told):
        counts.add(event)
    rows: list[list[object]] = counts.result()["files"]
    return rows


def test_threads_count_as_their_process_whichever_line_comes_first() -> None:
    told = """\
5 execve("/usr/bin/java", 0x7f, 0x7f) = 0
8 read(3</a>, ""..., 9) = 9
5 clone3({flags=CLONE_THREAD}, 88) = 8
5 read(3</a>, ""..., 9) = 1
8 +++ exited with 0 +++
8 execve("/usr/bin/other", 0x7f, 0x7f) = 0
8 read(3</a>, ""..., 9) = 2"""
    assert table(told) == [
        [1, "java", "elsewhere", "/a", 2, 10, 0, 0],
        [2, "other", "elsewhere", "/a", 1, 2, 0, 0],
    ]


def test_a_fork_bears_the_name_of_the_program_it_is_of() -> None:
    told = """\
5 execve("/bin/sh", 0x7f, 0x7f) = 0
6 write(1</a>, ""..., 3) = 3
6 +++ exited with 0 +++
5 clone(child_stack=NULL, flags=SIGCHLD) = 6
5 clone(child_stack=NULL, flags=SIGCHLD) = 7
7 execve("/bin/cat", 0x7f, 0x7f) = 0
7 write(1</a>, ""..., 4) = 4"""
    assert table(told) == [
        [1, "sh", "elsewhere", "/a", 0, 0, 1, 3],
        [2, "cat", "elsewhere", "/a", 0, 0, 1, 4],
    ]


def test_ids_of_another_name_space_do_not_mislead() -> None:
    told = """\
5 execve("/bin/sh", 0x7f, 0x7f) = 0
9 clone(child_stack=NULL, flags=SIGCHLD) = 9
9 clone(child_stack=NULL, flags=SIGCHLD) = 5
9 write(1</a>, ""..., 3) = 3
5 write(1</a>, ""..., 3) = 3"""
    assert [row[1] for row in table(told)] == ["?", "sh"]


def test_the_innermost_place_counts(tmp_path: Path) -> None:
    (tmp_path / "node/mount").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "node/mount")
    told = f"""\
5 read(3<{tmp_path}/node/mount/a>, "", 9) = 1
5 read(3<{tmp_path}/node/b>, "", 9) = 1
5 read(3</etc/passwd>, "", 9) = 1
5 read(3</proc/self/stat>, "", 9) = 1
5 read(3<socket:[7]>, "", 9) = 1"""
    rows = table(told, local=f"{tmp_path}/node", work=f"{tmp_path}/link")
    assert [row[2:4] for row in rows] == [
        ["work", "a"],
        ["local", "b"],
        ["elsewhere", "/etc/passwd"],
    ]
