"""Synthetic tiles: the same bytes for the same arguments, and a truth that is true."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits
from astropy.wcs import WCS
from hypothesis import given, settings
from hypothesis import strategies as st

from burstlab.dataset.model import SyntheticTiles
from burstlab.dataset.synthetic import (
    SKY_LEVEL_DN,
    Truth,
    _centres,
    _header,
    make_tiles,
    read_truth,
    true_galaxy,
    true_sky,
)
from burstlab.dataset.tiles import fault
from tests.dataset.conftest import SMALL

MAKE = (
    "import sys; from pathlib import Path\n"
    "from burstlab.dataset.model import SyntheticTiles\n"
    "from burstlab.dataset.synthetic import make_tiles\n"
    "make_tiles(Path(sys.argv[1]), SyntheticTiles.model_validate_json(sys.argv[2]))"
)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_same_arguments_give_the_same_bytes_on_another_cpu(
    small_tiles: Path, tmp_path: Path
) -> None:
    """numpy's exp differs in the last digit between instruction sets."""
    usable = np._core._multiarray_umath.__cpu_features__
    without = " ".join(f for f in np._core._multiarray_umath.__cpu_dispatch__ if usable[f])
    subprocess.run(
        [sys.executable, "-c", MAKE, str(tmp_path / "tiles"), SMALL.model_dump_json()],
        env=os.environ | {"NPY_DISABLE_CPU_FEATURES": without},
        check=True,
    )
    assert contents(tmp_path / "tiles") == contents(small_tiles)


def test_another_seed_gives_another_sky(small_tiles: Path, tmp_path: Path) -> None:
    make_tiles(tmp_path / "tiles", SMALL.model_copy(update={"seed": 1}))
    one, other = contents(small_tiles), contents(tmp_path / "tiles")
    assert one.keys() == other.keys()
    assert not any(one[name] == other[name] for name in one)


def test_tiles_are_like_those_of_the_survey(small_tiles: Path) -> None:
    tiles = sorted(small_tiles.glob("*.fits"))
    assert len(tiles) == 6
    for path in tiles:
        assert fault(path) is None
        header = fits.getheader(path)
        assert (header["NAXIS1"], header["NAXIS2"], header["BITPIX"]) == (64, 128, -32)
        assert (header["CTYPE1"], header["CTYPE2"]) == ("RA---SIN", "DEC--SIN")
        assert header["CDELT1"] == pytest.approx(-1 / 3600)
        assert 0 <= header["CROTA2"] <= 0.03


def test_tiles_are_the_true_sky_and_what_spoils_it(tmp_path: Path) -> None:
    make_tiles(tmp_path / "tiles", SMALL.model_copy(update={"noise_dn": 0.0, "slope_dn": 2.0}))
    truth = read_truth(tmp_path / "tiles/truth.json")
    assert {*truth.backgrounds} == {path.name for path in tmp_path.glob("tiles/*.fits")}
    for name, background in truth.backgrounds.items():
        pixels, header = fits.getdata(tmp_path / "tiles" / name, header=True)
        y, x = np.indices(pixels.shape)
        plane = background.offset + SKY_LEVEL_DN
        plane = plane + background.slope_x * (x / 64 - 0.5) + background.slope_y * (y / 128 - 0.5)
        left = pixels - true_sky(WCS(header), pixels.shape, truth) - plane
        assert np.abs(left).max() <= 1 / 2048 + 1e-7 * pixels.max()
    offsets = [background.offset for background in truth.backgrounds.values()]
    assert max(offsets) - min(offsets) > 1 and max(np.abs(offsets)) <= SMALL.offset_dn


def test_noise_is_what_was_asked_for(small_tiles: Path, tmp_path: Path) -> None:
    make_tiles(tmp_path / "quiet", SMALL.model_copy(update={"noise_dn": 0.0}))
    noise = np.concatenate(
        [
            (fits.getdata(path) - fits.getdata(tmp_path / "quiet" / path.name)).ravel()
            for path in small_tiles.glob("*.fits")
        ]
    )
    assert noise.std() == pytest.approx(1.0, rel=0.02)
    assert abs(noise.mean()) < 0.03


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), st.integers(2, 4), st.floats(0, 359.99), st.floats(-75, 75))
def test_tiles_leave_no_gap(columns: int, rows: int, ra_deg: float, dec_deg: float) -> None:
    """Every point between the centres of the outermost tiles lies in at least one tile."""
    arguments = SyntheticTiles(columns=columns, rows=rows, ra_deg=ra_deg, dec_deg=dec_deg)
    centres = [(ra, dec) for _, _, ra, dec in _centres(arguments)]
    east = max((ra - ra_deg + 180) % 360 - 180 for ra, _ in centres)
    south, north = min(dec for _, dec in centres), max(dec for _, dec in centres)
    ra, dec = np.meshgrid(
        ra_deg + 0.9 * np.linspace(-east, east, 40),  # 0.9: scans converge towards a pole
        np.linspace(south + 0.06, north - 0.06, 20),  # every other scan is shifted by 0.055
    )
    covered = np.zeros(ra.shape, dtype=bool)
    for centre in centres:
        x, y = WCS(_header(*centre, 0.03, arguments)).wcs_world2pix(ra % 360, dec, 0)
        covered |= (np.abs(x - 255.5) < 256) & (np.abs(y - 511.5) < 512)
    assert covered.all()


def plane(scale_arcsec: float = 1.0, size: int = 101) -> WCS:
    """Pixels around M31 whose middle one is its centre."""
    wcs = WCS(naxis=2)
    wcs.wcs.ctype = ["RA---TAN", "DEC--TAN"]
    wcs.wcs.crval = [SMALL.ra_deg, SMALL.dec_deg]
    wcs.wcs.crpix = [size // 2 + 1] * 2
    wcs.wcs.cdelt = [-scale_arcsec / 3600, scale_arcsec / 3600]
    return wcs


def truth_of(*stars: tuple[float, float, float]) -> Truth:
    return Truth(SMALL.ra_deg, SMALL.dec_deg, 200.0, np.array(stars).reshape(-1, 3), {})


def test_a_star_has_its_flux_and_place() -> None:
    truth = truth_of((12.25, -20.5, 1000.0))  # to the east, so left; to the south, so down
    star = true_sky(plane(), (101, 101), truth) - true_galaxy(plane(), (101, 101), truth)
    y, x = np.indices(star.shape)
    assert star.sum() == pytest.approx(1000.0, rel=1e-6)
    assert (star * x).sum() / star.sum() == pytest.approx(50 - 12.25, abs=1e-4)
    assert (star * y).sum() / star.sum() == pytest.approx(50 - 20.5, abs=1e-4)
    half = star >= star.max() / 2
    assert np.sqrt(half.sum() * 4 / np.pi) == pytest.approx(2.9, abs=0.5)


def test_surface_brightness_does_not_depend_on_the_pixels() -> None:
    truth = truth_of((0.0, 0.0, 1000.0))
    fine = true_sky(plane(0.5, 201), (201, 201), truth)
    coarse = true_sky(plane(1.0, 101), (101, 101), truth)
    assert fine[::2, ::2] == pytest.approx(coarse, abs=1e-3)


def test_the_galaxy_is_brightest_in_the_middle_and_lies_along_its_axis() -> None:
    galaxy = true_galaxy(plane(), (101, 101), truth_of())
    assert np.unravel_index(galaxy.argmax(), galaxy.shape) == (50, 50)
    assert galaxy.max() == pytest.approx(520.0)
    along, across = np.deg2rad(38.0), np.deg2rad(128.0)  # from north to east, which is left
    major, minor = (
        galaxy[50 + round(40 * np.cos(angle)), 50 - round(40 * np.sin(angle))]
        for angle in (along, across)
    )
    assert major > 1.2 * minor


def test_strips_are_parts_of_the_whole() -> None:
    truth = truth_of(*itertools.product((-30.0, 0.0, 24.6), (-31.2, -0.4, 33.0), (500.0,)))
    whole = true_sky(plane(), (101, 101), truth)
    strips = [true_sky(plane()[top : top + 20], (20, 101), truth) for top in range(0, 100, 20)]
    assert np.vstack(strips) == pytest.approx(whole[:100], abs=1e-9)


def test_no_stars_is_a_sky_too(tmp_path: Path) -> None:
    make_tiles(tmp_path / "tiles", SMALL.model_copy(update={"stars_per_tile": 0}))
    assert read_truth(tmp_path / "tiles/truth.json").stars.shape == (0, 3)


def test_new_tiles_replace_the_old_ones(tmp_path: Path) -> None:
    make_tiles(tmp_path / "tiles", SMALL)
    make_tiles(tmp_path / "tiles", SMALL.model_copy(update={"columns": 1, "rows": 1}))
    assert len([*tmp_path.glob("tiles/*.fits")]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["tiles"]


def test_another_truth_is_refused(tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text(json.dumps({"schema": "burstlab.truth/2"}))
    with pytest.raises(ValueError, match="truth/2"):
        read_truth(tmp_path / "truth.json")


@pytest.mark.requires("montage")
def test_montage_takes_them_for_good_images(small_tiles: Path, tmp_path: Path) -> None:
    command = ["mImgtbl", str(small_tiles), str(tmp_path / "images.tbl")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 'stat="OK"' in said and "count=6" in said and "badfits=0" in said
