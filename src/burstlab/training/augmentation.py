"""What becomes of decoded images before the network sees them: the CPU's part of an iteration."""

from typing import Any

import numpy as np

MEAN = np.array([123.68, 116.779, 103.939], dtype=np.float32)[:, None, None]  # of ImageNet
DEVIATION = np.array([58.393, 57.12, 57.375], dtype=np.float32)[:, None, None]


def decoded_side(side: int) -> int:
    """To what an image is scaled before a square of ``side`` is cut out [pixel]."""
    return side * 256 // 224


def minibatch(
    examples: list[Any], side: int, random: np.random.RandomState | None
) -> tuple[Any, Any]:
    """Pictures (n, 3, side, side), float32, and labels (n), int32.

    ``examples`` are those of ``pipelines.Images``. With ``random``, the square is cut out anywhere
    and mirrored half the time; without, it is the middle one, as for validation.
    """
    pictures = np.empty((len(examples), 3, side, side), dtype=np.float32)
    for picture, (array, _) in zip(pictures, examples, strict=True):
        picture[:] = cut(array, side, random)
    return pictures, np.array([label for _, label in examples], dtype=np.int32)


def cut(array: Any, side: int, random: np.random.RandomState | None) -> Any:
    """A square of an image (3, height, width), scaled: (3, side, side), float32."""
    rooms = [length - side for length in array.shape[1:]]
    top, left = [random.randint(room + 1) if random else room // 2 for room in rooms]
    square = array[:, top : top + side, left : left + side]
    if random and random.randint(2):
        square = square[:, :, ::-1]
    return (square - MEAN) / DEVIATION
