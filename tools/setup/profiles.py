"""Links from the user's Snakemake configuration directory to the profiles of this checkout.

The file ``.burstlab-links`` beside them remembers which links were made here and to what, one
``name<TAB>target`` a line, so that a link is known as ours after its checkout has moved or gone.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from burstlab.doctor.profiles import State, configuration_directory, profiles, state

MEMORY = ".burstlab-links"


def link_all(root: Path) -> bool:
    """Link every profile; what is not ours is left and told. Returns whether a link was made."""
    directory = configuration_directory()
    found = {profile: state(directory / profile.name, profile) for profile in profiles(root)}
    if all(state is State.LINKED for state in found.values()):
        return False
    try:
        with _remembered(directory) as links:
            made = [_link(directory / p.name, p, s, links) for p, s in found.items()]
    except OSError as error:
        print(
            f"setup: profiles are not linked, {error.filename} can't be written "
            f"({error.strerror}): use snakemake --profile profiles/NAME",
            flush=True,
        )
        return False
    return any(made)


def unlink_all(root: Path) -> None:
    """Take away the links that lead to this checkout."""
    directory = configuration_directory()
    if not (directory / MEMORY).exists():
        return
    with _remembered(directory) as links:
        for name, target in list(links.items()):
            if Path(target).parent == root / "profiles" and _is_ours(directory / name, links):
                (directory / name).unlink()
                del links[name]


def _link(link: Path, profile: Path, found: State, links: dict[str, str]) -> bool:
    """Make or repair one link if it is ours to make; returns whether it was."""
    if found is State.LINKED:
        return False
    if found is not State.ABSENT:
        stale = _is_ours(link, links) and not link.exists()
        if not stale:
            there = f"leads to {link.readlink()}" if link.is_symlink() else "is not a link"
            print(
                f"setup: {link} {there} and was left alone: use "
                f"snakemake --profile profiles/{profile.name}",
                flush=True,
            )
            return False
        link.unlink()
    links[link.name] = str(profile)
    link.symlink_to(profile)
    return True


def _is_ours(link: Path, links: dict[str, str]) -> bool:
    return link.is_symlink() and links.get(link.name) == str(link.readlink())


@contextmanager
def _remembered(directory: Path) -> Iterator[dict[str, str]]:
    """The links made so far, locked, and written back at the end."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / MEMORY).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        links = dict(line.split("\t", 1) for line in file.read().splitlines() if "\t" in line)
        try:
            yield links
        finally:
            _rewrite(file, links)


def _rewrite(file: TextIO, links: dict[str, str]) -> None:
    file.seek(0)
    file.truncate()
    file.writelines(f"{name}\t{target}\n" for name, target in links.items())
