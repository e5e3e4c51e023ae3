"""A small data set of files whose contents tell which sample they are, for any Python."""

from pathlib import Path
from typing import Any

from burstlab.pipelines import Files

COUNT = 50


class Numbered(Files):
    """Example i is ``(array, i)``; the array's length and values depend on i."""

    def decode(self, index: int, content: Any) -> Any:
        import numpy as np

        array = np.frombuffer(content, np.uint8).astype(np.float32)
        if len(array) == 0:
            raise ValueError(f"{self.files[index]} is empty")
        return array, index


def make(root: Path, count: int = COUNT) -> Numbered:
    """Write the files."""
    files = [f"{index % 5}/{index}" for index in range(count)]
    for part in range(5):
        (root / str(part)).mkdir(parents=True)
    for index, name in enumerate(files):
        (root / name).write_bytes(index.to_bytes(2, "little") * (20 + index))
    return Numbered(root, files)
