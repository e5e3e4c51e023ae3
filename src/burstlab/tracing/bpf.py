"""bpftrace(8) as the eye: the kernel adds up, and a process is never stopped.

Wants root, x86-64, a kernel that tells its types (BTF) and tracefs; written for bpftrace 0.17. All
calls with equal direction, size, file and process are one entry of a map in the kernel, so none is
lost however many there are; only the name of a file is told when it is first seen.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from burstlab.mounts import unescape
from burstlab.tracing.counting import UNKNOWN, Places

READ, WRITTEN, MAPPED = 0, 1, 2
# Numbers of system calls on x86-64 (arch/x86/entry/syscalls/syscall_64.tbl), and the argument that
# is the descriptor: read, pread64, readv, preadv, preadv2; write, ...; sendfile, copy_file_range
# and splice, which have two; mmap.
DESCRIPTORS = {
    READ: {0: 0, 17: 0, 19: 0, 295: 0, 327: 0, 40: 1, 326: 0, 275: 0},
    WRITTEN: {1: 0, 18: 0, 20: 0, 296: 0, 328: 0, 40: 0, 326: 2, 275: 2},
    MAPPED: {9: 4},
}
UNSEEN = {425: "io_uring", 209: "libaio"}
MOST_KEYS = 1 << 18  # entries of the map; memory for them is taken at the start
DEEPEST = 16  # directories of a path
LONGEST_NAME = 63  # bytes; what is longer is cut
ENVIRONMENT = {"BPFTRACE_MAP_KEYS_MAX": str(MOST_KEYS), "BPFTRACE_STRLEN": str(LONGEST_NAME + 1)}
REGULAR, KIND = 0x8000, 0xF000  # S_IFREG, S_IFMT
MINOR_BITS = 20  # of the kernel's own device numbers

_ENTER = """
  if ($id == {call}) {{
    $at = args->args[{argument}] & 0xffffffff;
    if ($at < 0x7fffffff) {{ @at{direction}[tid] = $at + 1; }}
  }}"""
_EXIT = """
tracepoint:raw_syscalls:sys_exit /@at{direction}[tid]/ {{
  $files = (uint64)((struct task_struct *)curtask)->files->fdt->fd;
  $file = (struct file *)*(uint64 *)($files + 8 * (@at{direction}[tid] - 1));
  $inode = $file->f_inode;
  if ((int64)args->ret >= 0) {{
    if (($inode->i_mode & {kind}) == {regular}) {{
      $device = (uint64)$inode->i_sb->s_dev;
      $generation = (uint64)$inode->i_generation;
      $process = ((struct task_struct *)curtask)->group_leader;
      @n[{direction}, {size}, $device, $inode->i_ino, $generation, pid, $process->start_time,
         $process->comm] = count();
      if (@told[$device, $inode->i_ino, $generation] == 0) {{
        @told[$device, $inode->i_ino, $generation] = 1;
        $name = $file->f_path.dentry;
        unroll ({deepest}) {{
          if ((uint64)$name != (uint64)$name->d_parent) {{
            printf("%lu %lu %lu %s", $device, $inode->i_ino, $generation, str($name->d_name.name));
            $name = $name->d_parent;
          }}
        }}
      }}
    }}{otherwise}
  }}
  delete(@at{direction}[tid]);
}}
"""
_NO_FILE = " else { @no_file_calls = count(); @no_file_bytes = sum(args->ret); }"


class Inode(NamedTuple):
    """A file; the generation tells it from a later one with the same number."""

    device: int
    number: int
    generation: int


def program() -> str:
    """What bpftrace runs: follows all children of its own child."""
    enter = "".join(
        _ENTER.format(call=call, direction=direction, argument=argument)
        for direction, calls in DESCRIPTORS.items()
        for call, argument in calls.items()
    )
    unseen = "".join(f"  if ($id == {call}) {{ @way{call} = count(); }}\n" for call in UNSEEN)
    leave = "".join(
        _EXIT.format(
            direction=direction,
            size=0 if direction == MAPPED else "args->ret",
            kind=KIND,
            regular=REGULAR,
            deepest=DEEPEST,
            otherwise="" if direction == MAPPED else _NO_FILE,
        )
        for direction in DESCRIPTORS
    )
    clear = "".join(f"clear(@at{direction}); " for direction in DESCRIPTORS)
    mine = "/@own[tid] || tid == cpid/"
    return (
        f"tracepoint:sched:sched_process_fork {mine} {{ @own[args->child_pid] = 1; }}\n"
        "tracepoint:sched:sched_process_exit /@own[tid]/ { delete(@own[tid]); }\n"
        f"tracepoint:raw_syscalls:sys_enter {mine} {{\n  $id = args->id;\n{enter}{unseen}}}\n"
        f"{leave}END {{ clear(@own); clear(@told); {clear}}}\n"
    )


def command(output: str, script: str, traced: str) -> list[str]:
    """The call of bpftrace; ``traced``: absolute path and words, without spaces in them."""
    return ["bpftrace", "--no-warnings", "-f", "json", "-o", output, "-c", traced, script]


def result(lines: Iterable[str], places: Places) -> dict[str, Any]:
    """What ``counting.Counts.result`` tells, of what ``program`` printed."""
    maps: dict[str, Any] = {}
    told: dict[str, Any]
    names: defaultdict[Inode, list[str]] = defaultdict(list)
    lost = False
    for line in lines:
        told = json.loads(line) if line.strip() else {"type": ""}
        if told["type"] == "printf":
            *numbers, name = told["data"].split(" ", 3)
            names[Inode(*map(int, numbers))].append(name)
        elif told["type"] == "map":
            maps |= told["data"]
        elif told["type"] == "lost_events":
            lost = True
    paths = {inode: _path(inode, parts, places) for inode, parts in names.items()}
    found = _add(maps.get("@n", {}), paths)
    found["no_files"] = [maps.get("@no_file_calls", 0), maps.get("@no_file_bytes", 0)]
    found["unseen"] += [[way, "", 1] for call, way in UNSEEN.items() if maps.get(f"@way{call}")]
    found["whole"] = not lost and len(maps.get("@n", {})) < MOST_KEYS
    return found


def _add(counts: Mapping[str, int], paths: Mapping[Inode, tuple[str, str]]) -> dict[str, Any]:
    files: defaultdict[tuple[int, str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    requests: defaultdict[tuple[str, str, str, int], int] = defaultdict(int)
    mapped: defaultdict[str, set[str]] = defaultdict(set)
    processes: dict[tuple[str, str, str], int] = {}
    for key, calls in counts.items():
        direction, size, *inode, pid, start, program = key.split(",", 7)
        place, path = paths.get(Inode(*map(int, inode)), ("", ""))
        if not place:
            continue
        if int(direction) == MAPPED:
            mapped[place].add(path)
            continue
        number = processes.setdefault((pid, start, program), len(processes) + 1)
        row = files[number, program or UNKNOWN, place, path]
        row[2 * int(direction)] += calls
        row[2 * int(direction) + 1] += calls * int(size)
        way = "read" if int(direction) == READ else "written"
        requests[program or UNKNOWN, place, way, int(size)] += calls
    return {
        "files": [[*key, *row] for key, row in files.items()],
        "requests": [[*key, calls] for key, calls in requests.items()],
        "unseen": [["mmap", place, len(found)] for place, found in mapped.items()
                   if place != Places.ELSEWHERE],
    }  # fmt: skip


def _path(inode: Inode, parts: list[str], places: Places) -> tuple[str, str]:
    """Place and path of a file, of its name and those of the directories above it, innermost
    first, up to the root of its file system; that may be mounted several times."""
    inside = "/" + "/".join(reversed(parts))
    found = [places.locate(path) for path in _mounted(inode.device, inside)]
    stored = [one for one in found if one[0] not in ("", Places.ELSEWHERE)]
    return next(iter(stored or found), ("", ""))


def _mounted(device: int, inside: str) -> list[str]:
    """Where a path of a file system can be seen: /proc/self/mountinfo (proc(5))."""
    wanted = f"{device >> MINOR_BITS}:{device & ((1 << MINOR_BITS) - 1)}"
    found = []
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        _, _, number, root, at = map(unescape, line.split(" ")[:5])
        root = "" if root == "/" else root
        if number == wanted and inside.startswith(f"{root}/"):
            found.append(at.rstrip("/") + inside.removeprefix(root))
    return found
