"""Compares a mosaic of synthetic tiles with the sky that they were made of.

Background matching leaves one plane over the whole mosaic free, so that is fitted and taken away
first. What then remains in the medians of blocks (a median does not mind stars) are steps that
background matching left; how well the brightness gradients agree tells whether every star is
where it belongs.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from astropy.io import fits
from astropy.wcs import WCS
from coaddition import Image, Tile, projected_tiles, read_rows
from verdict import WrongMosaic

from burstlab.dataset.synthetic import FRAME_DISTANCE, Truth, read_truth, true_sky

BLOCK = 32  # pixels; a block's median is good to 0.04 of the noise of a pixel
SKY_REDUCTION = 5.0  # of the steps that the tiles brought
NEGLIGIBLE_DN = 0.1  # what projecting tiles without any noise leaves
CORRELATION_SHARE = 0.8  # of what noise allows; a tile one pixel off has 0.6 (0.76 at the core)


@dataclass(frozen=True)
class Comparison:
    """The part of the mosaic under one tile; backgrounds in DN, one for each block."""

    centres: Image  # column and row of each block in the mosaic
    left: Image  # what the mosaic has more than the true sky
    brought: Image  # what the tile had more
    correlation: float  # of the mosaic's horizontal gradient with the true one
    least_correlation: float  # that it must have; below 0 where the tile shows no star


def judge(mount: Path, truth_path: Path) -> str:
    """What was found right, in a few words. Raises WrongMosaic."""
    truth = read_truth(truth_path)
    wcs = WCS(fits.getheader(mount / "mosaic.fits"))
    tiles = projected_tiles(mount)
    arguments = json.loads(truth_path.read_text())["arguments"]
    noise_dn = arguments["noise_dn"]
    compared = [compare(mount / "mosaic.fits", tile, wcs, truth, noise_dn) for tile in tiles]
    for tile, one in zip(tiles, compared, strict=True):
        if not one.correlation >= one.least_correlation:
            raise WrongMosaic(
                f"the stars of {tile.image.name} are not where the true sky has them "
                f"(correlation {one.correlation:.2f}, at least {one.least_correlation:.2f})"
            )
    centres = np.concatenate([one.centres for one in compared])
    left = rms_off_plane(centres, np.concatenate([one.left for one in compared]))
    brought = rms_off_plane(centres, np.concatenate([one.brought for one in compared]))
    most = min(largest_error(arguments), max(brought / SKY_REDUCTION, NEGLIGIBLE_DN))
    if not left <= most:
        raise WrongMosaic(
            f"the mosaic's background is {left:.3g} DN off the true sky, {most:.3g} is allowed "
            f"(its tiles brought {brought:.3g})"
        )
    return f"background {brought:.3g} -> {left:.3g} DN off the true sky"


def compare(mosaic: Path, tile: Tile, wcs: WCS, truth: Truth, noise_dn: float) -> Comparison:
    """``noise_dn`` is that of one pixel of the tiles."""
    rows = slice(tile.top, tile.top + tile.shape[0])
    found = read_rows(mosaic, rows)[:, tile.columns]
    sky = true_sky(wcs[rows, tile.columns], tile.shape, truth)
    centres, left = block_medians(found - sky)
    background = truth.backgrounds[tile.image.name]
    brought = background.offset + (centres / tile.shape[::-1] - 0.5) @ background[1:]
    centres += np.array([tile.left, tile.top])
    gradients = np.array([np.diff(image) for image in (found, sky)])
    known = gradients[:, np.isfinite(gradients).all(axis=0)]
    signal = np.var(known[1])
    possible = np.sqrt(signal / (signal + 2 * noise_dn**2 + np.finfo(float).tiny))
    least = CORRELATION_SHARE * possible - 4 / np.sqrt(known.shape[1])  # 4 standard errors
    return Comparison(centres, left, brought, float(np.corrcoef(known)[0, 1]), float(least))


def block_medians(image: Image) -> tuple[Image, Image]:
    """Centres (column, row) and medians of the blocks of which at least half is known."""
    high, wide = (size // BLOCK for size in image.shape)
    grid = image[: high * BLOCK, : wide * BLOCK].reshape(high, BLOCK, wide, BLOCK)
    blocks = grid.transpose(0, 2, 1, 3).reshape(high * wide, BLOCK * BLOCK)
    known = np.isfinite(blocks).mean(axis=1) >= 0.5
    row, column = np.indices((high, wide)).reshape(2, -1) * BLOCK + BLOCK / 2
    return np.column_stack([column, row])[known], np.nanmedian(blocks[known], axis=1)


def rms_off_plane(centres: Image, values: Image) -> float:
    """Root mean square of what a plane fitted to the values leaves [DN]."""
    terms = np.column_stack([np.ones(len(centres)), centres])
    plane, *_ = np.linalg.lstsq(terms, values, rcond=None)
    return float(np.sqrt(np.mean((values - terms @ plane) ** 2)))


def largest_error(arguments: dict[str, float]) -> float:
    """How far background matching may be off, by the size and noise of the tiles [DN].

    The standard error at a tile's far end, were its slope known from the overlap with the next
    frame alone: of N pixels with noise s each, d deep, a slope is known to s sqrt(12) / (d
    sqrt(N)). All overlaps together do better: by 5 for full-size tiles (0.28 DN are allowed, 0.05
    were measured).
    """
    depth = (1 - FRAME_DISTANCE) * arguments["tile_height"]
    pixels = depth * arguments["tile_width"]
    noise = arguments["noise_dn"] * math.sqrt(2)  # of a difference
    slope = noise * math.sqrt(12) / (depth * math.sqrt(pixels))
    return max(slope * arguments["tile_height"] / 2, NEGLIGIBLE_DN)
