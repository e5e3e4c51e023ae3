"""JPEG files like those of ILSVRC2012: folders of classes, sizes around 110 KB, all decodable.

Each image is a field of colours with noise on it, which makes about 0.6 bytes per pixel at quality
90: what ImageNet's files have. So the size of a file says how long it takes to decode, as it does
there. Areas are spread log-normally. The same arguments give the same pixels; the bytes depend on
the version of libjpeg too, and the manifest knows them.
"""

import math
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from burstlab.dataset import Report, silent

if TYPE_CHECKING:
    from burstlab.dataset.model import SyntheticImages

QUALITY = 90
BYTES_PER_PIXEL = 0.586  # measured over the whole range of sizes, with the noise below
NOISE = 58  # largest deviation of a pixel, of 255
SPREAD = 0.4  # standard deviation of the logarithm of an image's area
PIXELS_PER_COLOUR = 32  # side of the squares between whose colours the field is interpolated
LANDSCAPE = 4 / 3
BATCH = 64


def make_images(directory: Path, arguments: "SyntheticImages", report: Report = silent) -> None:
    """Make the class folders in ``directory``, which has that name only when complete.

    What an earlier call left there is replaced.
    """
    partial = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for label in range(arguments.classes):
        (partial / class_name(label)).mkdir(parents=True)
    starts = range(0, arguments.files, BATCH)
    with ProcessPoolExecutor() as pool:
        done = 0
        for made in pool.map(_make_some, *zip(*_batches(partial, arguments, starts), strict=True)):
            done += made
            report("synthetic images", done, arguments.files)
    shutil.rmtree(directory, ignore_errors=True)
    partial.rename(directory)


def class_name(label: int) -> str:
    """A folder's name, of the shape of ImageNet's; no such synset exists."""
    return f"n9{label:07d}"


def image(seed: int, number: int, mean_bytes: int) -> Image.Image:
    """The image of that number."""
    random = np.random.default_rng([seed, number])
    area = mean_bytes / BYTES_PER_PIXEL * math.exp(random.normal(-(SPREAD**2) / 2, SPREAD))
    ratio = LANDSCAPE if random.random() < 0.75 else 1 / LANDSCAPE
    width, height = max(16, round(math.sqrt(area * ratio))), max(16, round(math.sqrt(area / ratio)))
    colours = (height // PIXELS_PER_COLOUR + 2, width // PIXELS_PER_COLOUR + 2, 3)
    field = Image.fromarray(random.integers(0, 256, colours, dtype=np.uint8))
    smooth = np.asarray(field.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    half = (height // 2 + 1, width // 2 + 1, 1)
    noise = random.integers(-NOISE, NOISE + 1, half, dtype=np.int16).repeat(2, 0).repeat(2, 1)
    return Image.fromarray((smooth + noise[:height, :width]).clip(0, 255).astype(np.uint8))


def _batches(
    directory: Path, arguments: "SyntheticImages", starts: range
) -> Iterator[tuple[Path, int, int, int, int, int]]:
    for start in starts:
        stop = min(start + BATCH, arguments.files)
        yield directory, arguments.classes, arguments.seed, arguments.mean_bytes, start, stop


def _make_some(
    directory: Path, classes: int, seed: int, mean_bytes: int, start: int, stop: int
) -> int:
    for number in range(start, stop):
        folder = class_name(number % classes)
        made = image(seed, number, mean_bytes)
        made.save(directory / folder / f"{folder}_{number}.JPEG", "JPEG", quality=QUALITY)
    return stop - start
