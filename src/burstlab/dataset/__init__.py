"""Data sets: immutable inputs, each described by a manifest."""

from collections.abc import Callable

Report = Callable[[str, int, int], None]  # what is being done, how many are done, of how many


def silent(doing: str, done: int, total: int) -> None:
    """The report of work that nobody watches."""
