"""Is a FITS file whole? Montage's mImgtbl takes a tile with truncated data for a good one."""

import gzip
import warnings
from pathlib import Path

from astropy.io import fits
from astropy.utils.exceptions import AstropyUserWarning

GZIP_MAGIC = b"\x1f\x8b"
BLOCK = 1 << 20


def fault(path: Path) -> str | None:
    """What is wrong with a tile, plain or compressed with gzip; None when it is whole.

    The archive serves gzip, and a compressed tile is often kept under a name without `.gz`.
    """
    try:
        length = _length(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AstropyUserWarning)  # of what is told below
            with fits.open(path, memmap=False) as units:
                last = units[len(units) - 1].fileinfo()
        needed = last["datLoc"] + last["datSpan"]
    except FileNotFoundError:
        return "missing"
    except EOFError:
        return "truncated: the gzip stream ends early"
    except (OSError, ValueError, IndexError, fits.VerifyError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            return f"can't be read: {error.strerror}"
        return "is not a FITS image"
    if length < needed:
        return f"truncated: {length} of {needed} bytes that its FITS header wants"
    return None


def _length(path: Path) -> int:
    """Bytes of the file, after decompression if it is compressed. Raises OSError, EOFError."""
    with path.open("rb") as opened:
        if opened.read(2) != GZIP_MAGIC:
            return path.stat().st_size
        opened.seek(0)
        with gzip.open(opened) as stream:
            return sum(len(block) for block in iter(lambda: stream.read(BLOCK), b""))
