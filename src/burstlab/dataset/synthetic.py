"""Tiles like 2MASS Atlas images of a sky that is known: a galaxy, stars, and what spoils them.

Each tile sees the same sky (a disk like M31's and stars of a Gaussian point spread function) in
SIN projection, 1 arcsec per pixel, plus a background of its own (an offset and a slope, which
Montage has to take away) and noise. `truth.json` beside the tiles holds all of it.

The same arguments give the same bytes, also on another CPU: pixel values are rounded to 1/1024 DN,
coarser by far than what vector instructions differ by.
"""

import json
import math
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from astropy.io import fits
from astropy.wcs import WCS
from numpy.typing import NDArray

from burstlab.dataset import Report, silent

if TYPE_CHECKING:  # a check that compares with the truth needs no configuration
    from burstlab.dataset.model import SyntheticTiles

TRUTH = "truth.json"
TRUTH_SCHEMA = "burstlab.truth/1"
# Measured on real tiles of 512 x 1024 arcsec: distance of scans and of frames, and how far every
# other scan is shifted along its length.
SCAN_DISTANCE, FRAME_DISTANCE, STAGGER = 430.2 / 512, 970.0 / 1024, 199.8 / 1024
SKY_LEVEL_DN = 50.0
FWHM_ARCSEC = 2.9
SIGMA_ARCSEC = FWHM_ARCSEC / math.sqrt(8 * math.log(2))
PSF_RADIUS_SIGMA = 6.5  # beyond it even the brightest star adds less than 1e-4 DN
FAINTEST_DN, BRIGHTEST_DN, FLUX_INDEX = 150.0, 3e5, 1.1  # of a star, integrated; a power law
DISK_DN, BULGE_DN, BULGE_SIZE = 120.0, 400.0, 0.06  # centres; size relative to the disk's
POSITION_ANGLE_DEG, AXIS_RATIO = 38.0, 0.31  # of M31
LARGEST_TWIST_DEG = 0.03  # CROTA2; 2MASS scans have 0.003 to 0.025

Floats = NDArray[np.float64]


class Background(NamedTuple):
    """What one tile adds to the sky: offset [DN], slopes along x and y [DN over the tile]."""

    offset: float
    slope_x: float
    slope_y: float


@dataclass(frozen=True)
class Truth:
    """The true sky, and the background of each tile by file name."""

    ra_deg: float  # centre of the galaxy, and of the tangent plane stars are placed on
    dec_deg: float
    disk_arcsec: float  # scale length
    stars: Floats  # one row each: offset to the east and north [arcsec], flux [DN arcsec^2]
    backgrounds: Mapping[str, Background]


def read_truth(path: Path) -> Truth:
    """Read `truth.json`. Raises OSError, KeyError or ValueError when it is none."""
    truth = json.loads(path.read_text())
    if truth["schema"] != TRUTH_SCHEMA:
        raise ValueError(f"{path}: schema {truth['schema']!r}, {TRUTH_SCHEMA!r} is wanted")
    return Truth(
        truth["ra_deg"],
        truth["dec_deg"],
        truth["disk_arcsec"],
        np.array(truth["stars"], dtype=float).reshape(-1, 3),
        {name: Background(*values) for name, values in truth["backgrounds"].items()},
    )


def true_sky(wcs: WCS, shape: tuple[int, int], truth: Truth) -> Floats:
    """The sky without backgrounds and noise in the pixels of ``wcs``.

    ``shape`` is (rows, columns); of a large image, ask for strips (`wcs[top:bottom]`). Values are
    in DN, as surface brightness: what a tile has per pixel of one square arcsec, whatever size
    the pixels of ``wcs`` have. They leave out the constant level of the sky.
    """
    sky = true_galaxy(wcs, shape, truth)
    _add_stars(sky, wcs, truth)
    return sky


def true_galaxy(wcs: WCS, shape: tuple[int, int], truth: Truth) -> Floats:
    """The smooth part of ``true_sky``: where both agree, no star is near."""
    rows, columns = np.indices(shape)
    world = wcs.wcs_pix2world(columns.ravel(), rows.ravel(), 0)
    east, north = _tangent_plane(truth.ra_deg, truth.dec_deg).wcs_world2pix(*world, 0)
    angle = math.radians(POSITION_ANGLE_DEG)
    along = east * math.sin(angle) + north * math.cos(angle)
    across = east * math.cos(angle) - north * math.sin(angle)
    radius = np.hypot(along, across / AXIS_RATIO) / truth.disk_arcsec
    sky: Floats = DISK_DN * np.exp(-radius) + BULGE_DN * np.exp(-radius / BULGE_SIZE)
    return sky.reshape(shape)


def make_tiles(directory: Path, arguments: "SyntheticTiles", report: Report = silent) -> None:
    """Make the tiles and their truth in ``directory``, which has that name only when complete.

    What an earlier call left there is replaced. Two calls at once can make each other fail, but
    nothing wrong or incomplete gets the name.
    """
    partial = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    truth = _true_stars(arguments)
    backgrounds = {}
    number = arguments.columns * arguments.rows
    for column, row, ra_deg, dec_deg in _centres(arguments):
        random = np.random.default_rng([arguments.seed, column, row])
        name = f"synthetic-j-c{column:02d}r{row:02d}.fits"
        backgrounds[name] = _background(random, arguments)
        header = _header(ra_deg, dec_deg, random.uniform(0, LARGEST_TWIST_DEG), arguments)
        pixels = _pixels(header, truth, backgrounds[name], random, arguments.noise_dn)
        fits.PrimaryHDU(pixels, header).writeto(partial / name)
        report("synthetic tiles", len(backgrounds), number)
    _write_truth(partial / TRUTH, truth, backgrounds, arguments)
    _replace(directory, partial)


def _centres(arguments: "SyntheticTiles") -> Iterator[tuple[int, int, float, float]]:
    """Column, row and centre [deg] of each tile: scans of equal width at every declination."""
    scan = SCAN_DISTANCE * arguments.tile_width / 3600
    frame = FRAME_DISTANCE * arguments.tile_height / 3600
    stagger = STAGGER * arguments.tile_height / 3600
    for column in range(arguments.columns):
        for row in range(arguments.rows):
            shift = (stagger if column % 2 else -stagger) / 2
            dec = arguments.dec_deg + (row - (arguments.rows - 1) / 2) * frame + shift
            east = (column - (arguments.columns - 1) / 2) * scan
            yield column, row, (arguments.ra_deg + east / math.cos(math.radians(dec))) % 360, dec


def _true_stars(arguments: "SyntheticTiles") -> Truth:
    half_width = ((arguments.columns - 1) * SCAN_DISTANCE + 1.4) * arguments.tile_width / 2
    half_height = ((arguments.rows - 1) * FRAME_DISTANCE + 1.4) * arguments.tile_height / 2
    number = arguments.columns * arguments.rows * arguments.stars_per_tile
    random = np.random.default_rng(arguments.seed)
    east = random.uniform(-half_width, half_width, number)
    north = random.uniform(-half_height, half_height, number)
    flux = np.minimum(FAINTEST_DN * (random.pareto(FLUX_INDEX, number) + 1), BRIGHTEST_DN)
    stars = np.round(np.column_stack([east, north, flux]), 3)
    disk_arcsec = round(0.35 * max(half_width, half_height), 3)
    return Truth(arguments.ra_deg, arguments.dec_deg, disk_arcsec, stars, {})


def _background(random: np.random.Generator, arguments: "SyntheticTiles") -> Background:
    offset = random.uniform(-arguments.offset_dn, arguments.offset_dn)
    slope_x, slope_y = random.uniform(-0.5, 0.5, 2) * arguments.slope_dn
    return Background(round(offset, 6), round(slope_x, 6), round(slope_y, 6))


def _header(ra_deg: float, dec_deg: float, twist_deg: float, at: "SyntheticTiles") -> fits.Header:
    """The keywords of an Atlas image that Montage reads."""
    header = fits.Header()
    header["NAXIS"], header["NAXIS1"], header["NAXIS2"] = 2, at.tile_width, at.tile_height
    header["ORIGIN"] = ("burstlab", "synthetic: not a product of the survey")
    header["CTYPE1"], header["CTYPE2"] = "RA---SIN", "DEC--SIN"
    header["CRPIX1"], header["CRPIX2"] = at.tile_width / 2 + 0.5, at.tile_height / 2 + 0.5
    header["CRVAL1"], header["CRVAL2"] = round(ra_deg, 9), round(dec_deg, 9)
    header["CROTA2"] = round(twist_deg, 9)
    header["CDELT1"], header["CDELT2"] = -0.0002777777778, 0.0002777777778
    header["EQUINOX"], header["FILTER"], header["MAGZP"] = 2000.0, "j", 20.9044
    return header


def _pixels(
    header: fits.Header,
    truth: Truth,
    background: Background,
    random: np.random.Generator,
    noise_dn: float,
) -> NDArray[np.float32]:
    shape = (header["NAXIS2"], header["NAXIS1"])
    y, x = (np.arange(n) / n - 0.5 for n in shape)
    values = true_sky(WCS(header), shape, truth)
    values += SKY_LEVEL_DN + background.offset + background.slope_x * x
    values += background.slope_y * y[:, np.newaxis]
    values += random.normal(0.0, noise_dn, shape)
    return (np.rint(values * 1024) / 1024).astype(">f4")


def _add_stars(sky: Floats, wcs: WCS, truth: Truth) -> None:
    east, north, flux = truth.stars.T
    world = _tangent_plane(truth.ra_deg, truth.dec_deg).wcs_pix2world(east, north, 0)
    x, y = wcs.wcs_world2pix(*world, 0)
    sigma = SIGMA_ARCSEC / 3600 / math.sqrt(abs(np.linalg.det(wcs.pixel_scale_matrix)))  # pixel
    radius = PSF_RADIUS_SIGMA * sigma
    rows, columns = sky.shape
    near = (x > -radius) & (x < columns + radius) & (y > -radius) & (y < rows + radius)
    peak = flux / (2 * math.pi * SIGMA_ARCSEC**2)
    for x0, y0, height in zip(x[near], y[near], peak[near], strict=True):
        at_x = np.arange(max(0, math.ceil(x0 - radius)), min(columns, math.ceil(x0 + radius)))
        at_y = np.arange(max(0, math.ceil(y0 - radius)), min(rows, math.ceil(y0 + radius)))
        if at_x.size and at_y.size:
            star = np.outer(
                np.exp(-0.5 * ((at_y - y0) / sigma) ** 2), np.exp(-0.5 * ((at_x - x0) / sigma) ** 2)
            )
            sky[at_y[0] : at_y[-1] + 1, at_x[0] : at_x[-1] + 1] += height * star


def _tangent_plane(ra_deg: float, dec_deg: float) -> WCS:
    """A projection whose pixel coordinates, from 0, are arcsec to the east and north."""
    plane = WCS(naxis=2)
    plane.wcs.ctype = ["RA---TAN", "DEC--TAN"]
    plane.wcs.crval = [ra_deg, dec_deg]
    plane.wcs.crpix = [1.0, 1.0]
    plane.wcs.cdelt = [1 / 3600, 1 / 3600]
    plane.wcs.set()
    return plane


def _write_truth(
    path: Path,
    truth: Truth,
    backgrounds: Mapping[str, Background],
    arguments: "SyntheticTiles",
) -> None:
    content: dict[str, Any] = {
        "schema": TRUTH_SCHEMA,
        "arguments": arguments.model_dump(),
        "ra_deg": truth.ra_deg,
        "dec_deg": truth.dec_deg,
        "disk_arcsec": truth.disk_arcsec,
        "sky_level_dn": SKY_LEVEL_DN,
        "backgrounds": backgrounds,
        "stars": truth.stars.tolist(),
    }
    path.write_text(json.dumps(content) + "\n")


def _replace(directory: Path, partial: Path) -> None:
    old = directory.with_name(f".{directory.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if directory.exists():
        directory.rename(old)
    partial.rename(directory)
    shutil.rmtree(old, ignore_errors=True)
