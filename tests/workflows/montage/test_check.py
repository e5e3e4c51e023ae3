"""The verdict on a mosaic: right ones pass, and each way to be wrong is found and named."""

import importlib
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits

from .running import DIRECTORY, Workplace

pytestmark = pytest.mark.requires("montage")


def edit(image: Path, change: object) -> None:
    """Rewrite the pixels of a FITS image with ``change(pixels)``."""
    assert callable(change)
    with fits.open(image, mode="update", memmap=False) as hdus:
        hdus[0].data = change(hdus[0].data)


def add_up(place: Workplace, directory: str) -> None:
    """Make mosaic.fits again, of the images in this directory."""
    command = ["mAdd", "-e", "-p", directory, "projected.tbl", "region.hdr", "mosaic.fits"]
    subprocess.run(command, cwd=place.mount, check=True, capture_output=True)


def tile_area(place: Workplace, number: int) -> tuple[slice, slice]:
    """Rows and columns of the mosaic that one projected tile covers."""
    image = sorted((place.mount / "projected").glob("*[!a].fits"))[number]
    tile, mosaic = fits.getheader(image), fits.getheader(place.mount / "mosaic.fits")
    top = round(mosaic["CRPIX2"] - tile["CRPIX2"])
    left = round(mosaic["CRPIX1"] - tile["CRPIX1"])
    return slice(top, top + tile["NAXIS2"]), slice(left, left + tile["NAXIS1"])


def test_it_is_judged_by_the_interpreter_of_burstlab(tmp_path: Path, finished: Workplace) -> None:
    """A module or conda environment may put a python3 without astropy on PATH."""
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "python3").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert finished.check(PATH=path).returncode == 0
    assert finished.check(PATH=path, BURSTLAB_PYTHON="").returncode == 9


def refused(place: Workplace) -> str:
    """The one line with which the check refuses the mosaic."""
    done = place.check()
    assert done.returncode == 1, done.stdout
    [line] = done.stdout.splitlines()
    assert line.startswith("mosaic wrong: "), done.stderr
    return line


def test_right_mosaic(finished: Workplace) -> None:
    done = finished.check()
    assert done.returncode == 0, done.stdout
    [line] = done.stdout.splitlines()
    assert line.startswith("mosaic ok: 9 tiles, ")
    assert "steps between tiles" in line and "off the true sky" in line


def test_uncorrected_mosaic(copy: Workplace) -> None:
    add_up(copy, "projected")
    assert "not the mean of its background-matched tiles" in refused(copy)


def test_corrections_that_correct_nothing(copy: Workplace) -> None:
    """Mosaic and tables agree, but the steps are still there."""
    table = copy.mount / "corrections.tbl"
    head, *_ = table.read_text().splitlines()
    rows = [f"{number:9d}{0.0:14.5e}{0.0:14.5e}{0.0:14.5e}" for number in range(9)]
    table.write_text("\n".join([head, *rows]) + "\n")
    add_up(copy, "projected")
    assert "the steps between neighbouring tiles are" in refused(copy)


def test_blanked_tile(copy: Workplace) -> None:
    area = tile_area(copy, 5)

    def blank(pixels: np.ndarray) -> np.ndarray:
        pixels[area] = np.nan
        return pixels

    edit(copy.mount / "mosaic.fits", blank)
    assert "has holes where tiles cover the sky" in refused(copy)


def test_shifted_tile(copy: Workplace) -> None:
    area = tile_area(copy, 5)

    def shift(pixels: np.ndarray) -> np.ndarray:
        pixels[area] = np.roll(pixels[area], 3, axis=1)
        return pixels

    edit(copy.mount / "mosaic.fits", shift)
    assert "mosaic.fits" in refused(copy)


@pytest.mark.slow
def test_half_a_projected_tile(copy: Workplace) -> None:
    """Lost before the mosaic was added up, so that the mosaic agrees with its tiles."""
    image = sorted((copy.mount / "corrected").glob("*[!a].fits"))[5]
    for directory in ("projected", "corrected"):
        name = copy.mount / directory / image.name
        edit(name, lambda pixels: np.where(np.arange(len(pixels))[:, None] < 128, pixels, np.nan))
        area = name.with_name(f"{name.stem}_area.fits")
        edit(area, lambda pixels: np.where(np.arange(len(pixels))[:, None] < 128, pixels, 0))
    add_up(copy, "corrected")
    assert f"projected/{image.name} covers" in refused(copy)


@pytest.mark.slow
def test_smaller_mosaic(copy: Workplace) -> None:
    edit(copy.mount / "mosaic.fits", lambda pixels: pixels[:-40])
    assert "pixels, its region" in refused(copy)


@pytest.mark.slow
def test_tile_that_lies_about_its_place(finished: Workplace, tmp_path: Path) -> None:
    """All is consistent, only the true sky tells: one tile's header is two pixels off."""
    shutil.copytree(finished.tiles, tmp_path / "tiles")
    tile = sorted((tmp_path / "tiles").glob("*.fits"))[0]
    with fits.open(tile, mode="update") as hdus:
        hdus[0].header["CRPIX1"] += 2
    place = Workplace(tmp_path, tmp_path / "tiles")
    assert place.run().returncode == 0
    assert f"the stars of {tile.name} are not where the true sky has them" in refused(place)


@pytest.mark.slow
def test_background_off_the_true_sky(finished: Workplace, tmp_path: Path) -> None:
    """The truth finds steps by itself, whatever the tables say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DIRECTORY))
        true_sky = importlib.import_module("true_sky")
    shutil.copytree(finished.mount, tmp_path / "mount")
    place = Workplace(tmp_path, finished.tiles)
    truth = finished.tiles / "truth.json"
    assert "off the true sky" in true_sky.judge(place.mount, truth)
    add_up(place, "projected")
    with pytest.raises(true_sky.WrongMosaic, match="DN off the true sky"):
        true_sky.judge(place.mount, truth)


@pytest.mark.requires("2mass")
def test_real_tiles(tmp_path: Path) -> None:
    place = Workplace(tmp_path, Path(os.environ["BURSTLAB_2MASS"]).resolve())
    done = place.run()
    assert done.returncode == 0, done.stderr
    checked = place.check()
    assert checked.returncode == 0, checked.stdout
    assert "true sky" not in checked.stdout
