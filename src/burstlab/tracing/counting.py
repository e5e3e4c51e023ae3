"""From single transfers to a table: how much each process read and wrote of each file."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from burstlab.tracing.strace import Became, Ended, Event, Started, Transfer, Unseen, plain

UNKNOWN = "?"  # a program whose start was not seen
NO_FILES = ("/dev/", "/proc/", "/sys/", "/memfd:")  # and whatever is no path
SHARED_MEMORY = "/dev/shm/"


class Process:
    """A program while it runs in one process; its threads count as itself."""

    def __init__(self, program: str = "") -> None:
        self.program = program
        self.origin: Process | None = None  # whose fork it is
        self.whole: Process | None = None  # of which it has turned out to be a thread
        self.idle = True  # nothing is counted yet

    def itself(self) -> "Process":
        """The process whose thread it is, or this one."""
        process = self
        while process.whole is not None:
            process = process.whole
        return process

    def line(self) -> Iterator["Process"]:
        """Itself, the process it was forked from, and so on."""
        process: Process | None = self.itself()
        while process is not None:
            yield process
            process = process.origin.itself() if process.origin else None

    def name(self) -> str:
        """Its program; that of the process it was forked from, where it became no other."""
        return next((process.program for process in self.line() if process.program), UNKNOWN)


class Places:
    """Directories by name, of which the innermost counts."""

    ELSEWHERE = "elsewhere"

    def __init__(self, places: Mapping[str, str]) -> None:
        found = {name: os.path.realpath(path) + "/" for name, path in places.items()}
        self._places = sorted(found.items(), key=lambda place: -len(place[1]))

    def locate(self, path: str) -> tuple[str, str]:
        """Name of a place and the path in it; no name for what is no file."""
        shared = path.startswith(SHARED_MEMORY)
        if not path.startswith("/") or (path.startswith(NO_FILES) and not shared):
            return "", ""
        for place, directory in self._places:
            if path.startswith(directory):
                return place, path.removeprefix(directory)
        return self.ELSEWHERE, path


class Counts:
    """Adds events up."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._located: dict[str, tuple[str, str]] = {}
        self._threads: dict[int, Process] = {}
        self._claimed: set[int] = set()  # those of which their parent has told
        self._unclaimed: dict[int, Process] = {}  # ended before that
        self._moved: dict[tuple[Process, str, str], list[int]] = {}
        self._sizes: defaultdict[tuple[Process, str, str, int], int] = defaultdict(int)
        self._unseen: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.no_files = [0, 0]  # calls and bytes of pipes, sockets, terminals, devices
        self.first: int | None = None  # the id of the program that was traced

    def add(self, event: Event) -> None:
        """One event more."""
        if self.first is None:
            self.first = event.thread
            self._claimed.add(event.thread)
        if isinstance(event, Transfer):
            self._transfer(event)
        elif isinstance(event, Started):
            self._start(event)
        elif isinstance(event, Became):
            self._become(event)
        elif isinstance(event, Ended):
            self._end(event.thread)
        else:
            self._miss(event)

    def ended(self, thread: int | None) -> bool:
        """Whether a thread that was seen is no more."""
        return thread is not None and thread not in self._threads

    def result(self) -> dict[str, Any]:
        """Plain values: ``files`` (process, program, place, path, reads, bytes read, writes, bytes
        written), ``requests`` (program, place, direction, size [bytes], calls), ``unseen`` (way,
        place, files), ``whole`` (nothing is missing)."""
        numbers: dict[Process, int] = {}
        files: dict[tuple[int, str, str, str], list[int]] = {}
        for (process, path, direction), (calls, size_bytes) in self._moved.items():
            one = process.itself()
            number = numbers.setdefault(one, len(numbers) + 1)
            row = files.setdefault((number, one.name(), *self._locate(path)), [0, 0, 0, 0])
            at = 0 if direction == "read" else 2
            row[at] += calls
            row[at + 1] += size_bytes
        requests: defaultdict[tuple[str, str, str, int], int] = defaultdict(int)
        for (process, *what), calls in self._sizes.items():
            requests[process.itself().name(), *what] += calls  # type: ignore[index]
        return {
            "files": [[*key, *row] for key, row in files.items()],
            "requests": [[*key, calls] for key, calls in requests.items()],
            "unseen": [[*key, len(paths)] for key, paths in self._unseen.items()],
            "no_files": self.no_files,
            "whole": True,
        }

    def _transfer(self, event: Transfer) -> None:
        thread, direction, path, size_bytes = event
        place = self._locate(path)[0]
        if not place:
            self.no_files[0] += 1
            self.no_files[1] += size_bytes
            return
        process = self._of(thread)
        process.idle = False
        key = process, path, direction
        if key in self._moved:
            moved = self._moved[key]
            moved[0] += 1
            moved[1] += size_bytes
        else:
            self._moved[key] = [1, size_bytes]
        self._sizes[process, place, direction, size_bytes] += 1

    def _start(self, event: Started) -> None:
        """Ids are those of the tracer's name space; of another one's, some may seem taken."""
        parent, known = self._of(event.thread), event.child in self._threads
        child = self._threads.get(event.child) or self._unclaimed.pop(event.child, None)
        if event.child in self._claimed or (child and child in parent.line()):
            return
        if known or child is None:
            self._claimed.add(event.child)
            if child is None or event.of_same_process:
                self._threads[event.child] = parent if event.of_same_process else Process()
        child = child or self._threads[event.child]
        if event.of_same_process:
            child.whole = parent if child is not parent else None
        else:
            child.origin = parent
            child.program = child.program or parent.program

    def _end(self, thread: int) -> None:
        process = self._threads.pop(thread, None)
        if thread in self._claimed:
            self._claimed.discard(thread)
        elif process:
            self._unclaimed[thread] = process

    def _miss(self, event: Unseen) -> None:
        """Libraries are mapped by every program, and are nobody's question."""
        place = self._locate(event.path)[0]
        if not event.path or place not in ("", Places.ELSEWHERE):
            self._unseen[event.way, place].add(event.path)

    def _become(self, event: Became) -> None:
        process = self._of(event.thread)
        if not process.idle or process.program:
            origin = process.origin
            process = self._threads[event.thread] = Process()
            process.origin = origin
        process.program = event.program

    def _of(self, thread: int) -> Process:
        if thread not in self._threads:
            self._threads[thread] = Process()
        return self._threads[thread]

    def _locate(self, text: str) -> tuple[str, str]:
        """Place and path in it; no place for what is no file. Looked at once for each path."""
        if text not in self._located:
            self._located[text] = self._places.locate(plain(text))
        return self._located[text]
