"""strace(1) as the eye: how it is called, and what its lines say.

Wants strace 5.3 or newer. Written for what 6.1 prints: every line begins with the thread's id; a
descriptor is followed by its path (``3</a/b>``, signs < and > and bytes beyond ASCII as octal
escapes); a call that others interrupt is told in two lines.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

READS = ("read", "pread64", "readv", "preadv", "preadv2")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
COPIES = {"copy_file_range": (0, 1), "splice": (0, 1), "sendfile": (1, 0)}  # from, to: descriptors
STARTS = ("fork", "vfork", "clone", "clone3")
BECOMES = ("execve", "execveat")
UNSEEN = {"mmap": "mmap", "io_uring_setup": "io_uring", "io_submit": "libaio"}
CALLS = (*READS, *WRITES, *COPIES, *STARTS, *BECOMES, *UNSEEN)


class Transfer(NamedTuple):
    """Bytes moved by one call; 0 at the end of a file."""

    thread: int
    direction: str  # "read" or "written"
    path: str  # of a file; something like pipe:[17] for what is none
    size_bytes: int


class Started(NamedTuple):
    """A new thread, or a new process; its own lines may have come before this."""

    thread: int
    child: int
    of_same_process: bool


class Became(NamedTuple):
    """A process runs another program from now on."""

    thread: int
    program: str


class Ended(NamedTuple):
    """A thread is no more; that of the first id is the program that was traced."""

    thread: int


class Unseen(NamedTuple):
    """A way to read and write of which no call tells the sizes."""

    thread: int
    way: str  # a value of UNSEEN
    path: str  # of the file that is mapped


Event = Transfer | Started | Became | Ended | Unseen

_CUT = re.compile(r"(\d+) +(.*?) ?<(?:unfinished|pid changed to (\d+)) \.\.\.>$")
_RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)$")
_CALL = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\w+|\?)")
_ENDED = re.compile(r"(\d+) +\+\+\+ (?:exited|killed)")
_DESCRIPTOR = re.compile(r"\d+<([^<>]*)>")
_PROGRAM = re.compile(r'"([^"]*)"')


def command(output: str, traced: Sequence[str]) -> list[str]:
    """The call of strace that writes what ``events`` reads into ``output``.

    No filter for what is no read or write (--seccomp-bpf stops a process at those only), no bytes
    of the data themselves (-s 0), no signals.
    """
    calls = ",".join(f"?{name}" for name in CALLS)  # not every architecture has all of them
    flags = ["--follow-forks", "--seccomp-bpf", "--decode-fds=path", "--quiet=attach,personality"]
    flags += ["--string-limit=0", f"--trace={calls}", "--signal=none", f"--output={output}"]
    return ["strace", *flags, "--", *traced]


def events(lines: Iterable[str]) -> Iterator[Event]:
    """What happened, in the order in which strace tells it; calls that failed are left out."""
    cut: dict[str, str] = {}
    for line in lines:
        if line.endswith(" ...>\n"):
            if found := _CUT.match(line):
                cut[found[3] or found[1]] = found[2]
            continue
        if found := _RESUMED.match(line):
            line = f"{found[1]} {cut.pop(found[1], '')}{found[2]}"
        if found := _CALL.match(line):
            thread, name, arguments, result = found.groups()
            if not result.startswith(("-", "?")):
                yield from _call(int(thread), name, arguments, result)
        elif found := _ENDED.match(line):
            yield Ended(int(found[1]))


def _call(thread: int, name: str, arguments: str, result: str) -> Iterator[Event]:
    if name in READS or name in WRITES:
        if found := _DESCRIPTOR.match(arguments):
            yield Transfer(thread, "read" if name in READS else "written", found[1], int(result))
    elif name in COPIES:
        paths = _DESCRIPTOR.findall(arguments)
        for direction, at in zip(("read", "written"), COPIES[name], strict=True):
            yield Transfer(thread, direction, paths[at], int(result))
    elif name in STARTS:
        yield Started(thread, int(result), "CLONE_THREAD" in arguments)
    elif name in BECOMES:
        if found := _PROGRAM.search(arguments):
            yield Became(thread, plain(found[1]).rpartition("/")[2])
    elif name == "mmap":
        if found := _DESCRIPTOR.search(arguments):
            yield Unseen(thread, UNSEEN[name], found[1])
    elif name in UNSEEN:
        yield Unseen(thread, UNSEEN[name], "")


def plain(text: str) -> str:
    r"""Text as it is, of text with escapes as strace writes them (``\74``, ``\n``)."""
    if "\\" not in text:
        return text
    raw = text.encode("latin-1").decode("unicode_escape").encode("latin-1")
    return raw.decode("utf-8", errors="replace")
