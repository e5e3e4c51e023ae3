"""What makes a mosaic right, and in one line what is wrong with one that is not.

It has the shape of its region, every tile covers the sky that its header names, every pixel is
the mean of the projected tiles less their background planes, and the planes took the steps
between neighbouring tiles away.
"""

from pathlib import Path

import numpy as np
from astropy.io import fits
from astropy.table import Table
from coaddition import Tile, area_path, coadd, projected_tiles, read_rows

STRIP_ROWS = 512  # bounds the memory: two strips of a 25,000 pixel wide mosaic are 200 MB
TOLERANCE_DN = 1e-6  # rounding is below 1e-12, the smallest plane worth having above 1e-3
LEAST_COVER = 0.9  # real tiles have up to 2.2 % blank pixels
STEP_REDUCTION = 5.0  # measured: 38 for ten tiles of Orion, 210 and 820 for synthetic ones
INVISIBLE_STEP = 0.2  # of the pixel noise; backgrounds that matched from the start stay so


class WrongMosaic(Exception):
    """What is wrong with the mosaic, in one line."""


def check_shape(mosaic: Path) -> tuple[int, int]:
    """Rows and columns of mosaic.fits. Raises WrongMosaic unless they are the region's."""
    region = fits.Header.fromtextfile(mosaic.with_name("region.hdr"))
    header = fits.getheader(mosaic)
    wanted, found = ((h["NAXIS1"], h["NAXIS2"]) for h in (region, header))
    if wanted != found:
        raise WrongMosaic(f"mosaic.fits has {found} pixels, its region {wanted}")
    return header["NAXIS2"], header["NAXIS1"]


def check_cover(tiles: list[Tile]) -> None:
    """Raises WrongMosaic for a tile of which projection lost a part."""
    for tile in tiles:
        share = np.nansum(read_rows(area_path(tile.image), slice(None))) / tile.sky_sr
        if share < LEAST_COVER:
            raise WrongMosaic(f"projected/{tile.image.name} covers {share:.0%} of its sky")


def check_pixels(mosaic: Path, tiles: list[Tile], shape: tuple[int, int]) -> None:
    """Raises WrongMosaic unless every pixel is what the projected tiles make it."""
    for top in range(0, shape[0], STRIP_ROWS):
        rows = slice(top, min(top + STRIP_ROWS, shape[0]))
        found = read_rows(mosaic, rows)
        wanted = coadd(tiles, rows, shape[1])
        holes = np.isfinite(wanted) & ~np.isfinite(found)
        if holes.any():
            where = first_pixel(holes, top)
            raise WrongMosaic(f"mosaic.fits has holes where tiles cover the sky, first at {where}")
        wrong = np.isfinite(found) & ~(np.abs(found - wanted) < TOLERANCE_DN)
        if wrong.any():
            most = np.nanmax(np.abs(found - wanted), initial=0.0)
            where = first_pixel(wrong, top)
            raise WrongMosaic(
                f"mosaic.fits is not the mean of its background-matched tiles: off by up to "
                f"{most:.3g} DN in rows {rows.start} to {rows.stop}, first at {where}"
            )


def first_pixel(mask: np.ndarray, top: int) -> str:
    row, column = np.argwhere(mask)[0]
    return f"column {column}, row {row + top}"


def check_steps(mount: Path, tiles: list[Tile]) -> str:
    """Compares the steps between neighbours before and after background matching.

    A step is the plane fitted to the difference of two tiles, at the centre of their overlap; the
    root mean square over all pairs is weighted by the pixels they share.
    """
    fitted = Table.read(mount / "fits.tbl", format="ascii.ipac")
    if not len(fitted):
        return "no overlaps"
    x, y = (np.asarray(fitted[name], dtype=float) for name in ("xcenter", "ycenter"))
    before = fitted["a"] * x + fitted["b"] * y + fitted["c"]
    planes = np.array([tile.plane for tile in tiles])
    a, b, c = (planes[fitted["plus"]] - planes[fitted["minus"]]).T
    after = before - (a * x + b * y + c)
    shared = fitted["npixel"]
    rms_before, rms_after = (np.sqrt(np.average(s**2, weights=shared)) for s in (before, after))
    noise = np.median(fitted["rms"])
    if rms_after > max(rms_before / STEP_REDUCTION, INVISIBLE_STEP * noise):
        raise WrongMosaic(
            f"the steps between neighbouring tiles are {rms_after:.3g} DN after background "
            f"matching, {rms_before:.3g} DN before"
        )
    return f"steps between tiles {rms_before:.3g} -> {rms_after:.3g} DN"


def judge(mount: Path) -> str:
    """What was found right in a work directory, in a few words. Raises WrongMosaic."""
    mosaic = mount / "mosaic.fits"
    shape = check_shape(mosaic)
    tiles = projected_tiles(mount)
    check_cover(tiles)
    check_pixels(mosaic, tiles, shape)
    return f"{len(tiles)} tiles, {shape[1]}x{shape[0]} pixels, {check_steps(mount, tiles)}"
