"""A staging on a terminal: a line for each phase, with files/s, MB/s and the time left."""

import math
import time
from collections.abc import Callable
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TaskID, TextColumn


class Watching(Progress):
    """What is shown of a data set of ``size_bytes`` while it is staged."""

    def __init__(
        self, size_bytes: int, console: Console, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``clock`` tells seconds."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(20),
            TextColumn("{task.fields[told]}"),
        )
        super().__init__(*columns, console=console, get_time=clock)
        self._size_bytes = size_bytes
        self._lines: dict[str, TaskID] = {}

    def tell(self, phase: str, files: int, size_bytes: int) -> None:
        """How far a phase has come; nothing is said of one that counts nothing yet."""
        if phase not in self._lines:
            self._lines[phase] = self.add_task(phase, total=None, told="")
        line = self._lines[phase]
        if size_bytes:
            self.update(line, completed=size_bytes, total=self._size_bytes)
            self.update(line, told=_told(self._tasks[line], files))


def _told(line: Task, files: int) -> str:
    done, total = line.completed / 1e6, (line.total or 0) / 1e6
    told = f"{files} files, {files / max(line.elapsed or 0, 1e-9):.0f} files/s"
    told += f", {done:.1f} of {total:.1f} MB"
    if line.speed is not None:
        told += f", {line.speed / 1e6:.1f} MB/s"
    if line.time_remaining is not None:
        told += f", {timedelta(seconds=math.ceil(line.time_remaining))} left"
    return told
