"""Atlas images from the archive at IPAC, by Montage's `mArchiveList` and `mArchiveExec`.

`mArchiveExec` says stat="OK" and exits with 0 however many tiles it failed to get, takes a
download cut short for a good one, and leaves empty files behind: so every tile is looked at.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from astropy.table import Table

from burstlab.dataset import Report, silent
from burstlab.dataset.model import Region
from burstlab.dataset.tiles import fault
from burstlab.errors import ConfigurationError

LIST_LIMIT_S = 600
TILE_LIMIT_S = 60  # of silence, per tile
TOGETHER = 20  # tiles per call of mArchiveExec: how often progress is told
PR_SET_PDEATHSIG = 1
STRUCT = re.compile(r'\[struct stat="(\w+)"(.*?)\]\s*$', re.DOTALL | re.MULTILINE)
FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|([^,\]]*))')


def fetch(region: Region, band: str, beside: Path, report: Report = silent) -> Path:
    """The directory, in ``beside``, of all tiles that touch ``region``.

    It has its name only when it is complete; until then it ends in `.partial`, and the next call
    goes on where this one ended. Raises ConfigurationError that says what failed.
    """
    _check_programs()
    name = f"2mass-{band.lower()}-{region.ra_deg:.6f}{region.dec_deg:+.6f}"
    directory = beside / f"{name}-{region.width_deg:g}x{region.height_deg:g}"
    partial = directory.with_name(f"{directory.name}.partial")
    if directory.exists():  # complete once: what has been lost since is fetched again
        directory.rename(partial)
    partial.mkdir(parents=True, exist_ok=True)
    rows = _listed(region, band, partial / "archive.tbl")
    _fetch_rows(rows, partial, report)
    partial.rename(directory)
    return directory


def tile_name(file: str) -> str:
    """Name on disk of a row's `file`: mArchiveExec decompresses what ends in .gz."""
    return file.removesuffix(".gz")


def _check_programs() -> None:
    # With curl alone mArchiveExec (6.0) never ends: a wget that it can't start rewinds its table.
    for program in ("mArchiveList", "mArchiveExec", "wget"):
        if not shutil.which(program):
            raise ConfigurationError(
                f"{program} is not on PATH: install Montage and wget, or give tiles by "
                "BURSTLAB_2MASS"
            )


def _listed(region: Region, band: str, path: Path) -> Table:
    """The archive's table of tiles, kept for the next call."""
    if path.exists():
        return _read_table(path)
    unchecked = path.with_name(f".{path.name}.partial")
    centre = f"{region.ra_deg:.6f} {region.dec_deg:.6f}"
    size = (f"{region.width_deg:g}", f"{region.height_deg:g}")
    command = ["mArchiveList", "2mass", band, centre, *size, str(unchecked)]
    said = _call(command, unchecked.parent, LIST_LIMIT_S)
    table = _read_table(unchecked)
    if len(table) != int(said.get("count", 0)):
        raise ConfigurationError(
            f"mArchiveList: {said.get('count')} tiles announced, {len(table)} listed: try again"
        )
    unchecked.rename(path)
    return table


def _read_table(path: Path) -> Table:
    try:
        table = Table.read(path, format="ascii.ipac")
    except (ValueError, IndexError, OSError) as error:
        raise ConfigurationError(f"mArchiveList: {path} is no table of tiles: {error}") from error
    if not {"URL", "file"} <= set(table.colnames) or not len(table):
        raise ConfigurationError(f"mArchiveList: no tiles in {path}: is the region covered?")
    for file in table["file"]:
        if Path(file).name != file or not tile_name(file).endswith(".fits"):
            raise ConfigurationError(f"mArchiveList: {path}: {str(file)!r} is no name of a tile")
    return table


def _fetch_rows(rows: Table, directory: Path, report: Report) -> None:
    """Fetch what is not there yet, and whole. Raises ConfigurationError when a tile is missing."""
    names = [tile_name(file) for file in rows["file"]]
    wanted = [i for i, name in enumerate(names) if fault(directory / name)]
    for start in range(0, len(wanted), TOGETHER):
        part = wanted[start : start + TOGETHER]
        report("tiles fetched", len(rows) - len(wanted) + start, len(rows))
        _fetch_part(rows[part], directory)
        if all(fault(directory / names[i]) for i in part):
            break  # nothing comes any more: to ask for the rest would take hours
    lost = [f"{names[i]}: {why}" for i in wanted if (why := fault(directory / names[i]))]
    if lost:
        raise ConfigurationError(
            f"mArchiveExec: {len(lost)} of {len(rows)} tiles did not come, first {lost[0]}; "
            "the same command goes on from here"
        )
    report("tiles fetched", len(rows), len(rows))


def _fetch_part(rows: Table, directory: Path) -> None:
    for file in rows["file"]:  # gunzip asks before it replaces a file
        (directory / file).unlink(missing_ok=True)
        (directory / tile_name(file)).unlink(missing_ok=True)
    table = directory / ".part.tbl"
    rows.write(table, format="ascii.ipac", overwrite=True)
    command = ["mArchiveExec", "-t", str(TILE_LIMIT_S), "-p", str(directory), str(table)]
    said = _call(command, directory, TILE_LIMIT_S * (len(rows) + 1))
    table.unlink()
    if said.get("count") != str(len(rows)):
        raise ConfigurationError(f"mArchiveExec: {said.get('count')} tiles tried of {len(rows)}")


def _end_with_parent() -> None:
    """In the child: after `kill -9` of this process nobody else would end it (prctl(2))."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _call(command: Sequence[str], directory: Path, limit_s: float) -> dict[str, str]:
    """Fields of the struct that a program of Montage prints; raises unless it says OK."""
    program = command[0]
    child = subprocess.Popen(
        [*command],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # its wget ends with it
        preexec_fn=_end_with_parent,
    )
    try:
        output, _ = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"{program}: no end after {limit_s:.0f} s") from error
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    status, first = next(iter(STRUCT.findall(output)), ("", ""))
    said = {key: text or word for key, text, word in FIELD.findall(first)}
    if child.returncode != 0 or status != "OK":
        words = " ".join((said.get("msg") or output[-200:]).split())
        raise ConfigurationError(f"{program}: {words or 'no answer'} (status {child.returncode})")
    return said
