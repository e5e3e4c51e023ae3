"""A small data set of files whose contents tell which sample they are, for any Python."""

import shutil
from pathlib import Path
from typing import Any

from burstlab.pipelines import Files, Mode, Options, Pipeline, open_pipeline

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


def opened(mode: Mode, files: Numbered, **options: Any) -> Pipeline:
    """A pipeline with what its mode needs."""
    local = files.root.parent / "local"
    if mode == "ssd" and not local.exists():
        shutil.copytree(files.root, local)
    given = {"local": None if mode == "direct" else local, "time_limit_s": 60.0, **options}
    return open_pipeline(mode, files, Options(**given))


def is_right(indices: Any, examples: list[Any]) -> bool:
    """Whether the examples are those of these indices."""
    import numpy as np

    wanted = [np.frombuffer(i.to_bytes(2, "little") * (20 + i), np.uint8) for i in indices]
    return [label for _, label in examples] == list(indices) and all(
        array.dtype == np.float32 and np.array_equal(array, one)
        for (array, _), one in zip(examples, wanted, strict=True)
    )
