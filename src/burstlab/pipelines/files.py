"""Data sets of files: which files there are, and how the bytes of one become an example."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined]  # from 3.12 on


class Files(ABC):
    """Sample i is the file ``files[i]`` below ``root``.

    Subclasses say what an example is; they go to decode workers by fork or by pickling. An object
    of them is a data set of Chainer's and PyTorch's too: it has a length and gives ``files[i]``.
    """

    def __init__(self, root: str | Path, files: Sequence[str]) -> None:
        self.root = Path(root)
        self.files = files
        self.numbers: Sequence[int] = range(len(files))  # of the samples, for a node's agent

    @abstractmethod
    def decode(self, index: int, content: "Buffer") -> Any:
        """The example that the bytes of sample ``index`` mean; they are gone afterwards."""

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        return self.read(self.root, index)

    def read(self, root: Path, index: int) -> Any:
        """Sample ``index``, from the file below ``root``. Raises OSError, and what decode does."""
        return self.decode(index, (root / self.files[index]).read_bytes())

    def part(self, indices: Sequence[int]) -> Self:
        """The data set that holds these samples only, such as a rank's shard."""
        part = copy(self)
        part.files = [self.files[index] for index in indices]
        part.numbers = [self.numbers[index] for index in indices]
        return part


class Images(Files):
    """JPEG files in folders of classes: ``(array, label)``, as Chainer's LabeledImageDataset.

    The array is ``(3, height, width)`` of ``dtype``, values 0 to 255. The label (numpy.int32) is
    the place of the file's folder among all folders in alphabetical order. With ``side``, it is the
    middle square of the image, scaled to so many pixels; else the image is as large as it is.
    """

    def __init__(
        self,
        root: str | Path,
        files: Sequence[str],
        *,
        side: int | None = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__(root, files)
        self.side, self.dtype = side, dtype
        folders = [name.rpartition("/")[0] for name in files]
        places = {name: place for place, name in enumerate(sorted(set(folders)))}
        self.labels: Sequence[int] = [places[folder] for folder in folders]
        self.classes = len(places)

    def decode(self, index: int, content: "Buffer") -> Any:
        """Raises OSError naming a file that is no whole image."""
        import numpy as np
        from PIL import Image

        try:
            with Image.open(BytesIO(content)) as image:
                image.load()
                picture = image.convert("RGB") if image.mode != "RGB" else image  # without a copy
        except (OSError, SyntaxError) as error:
            raise OSError(f"{self.root / self.files[index]}: no whole image: {error}") from error
        if self.side is not None:
            picture = _middle(picture, self.side)
        array = np.asarray(picture).transpose(2, 0, 1).astype(self.dtype, order="C")
        return array, np.int32(self.labels[index])

    def part(self, indices: Sequence[int]) -> Self:
        part = super().part(indices)
        part.labels = [self.labels[index] for index in indices]
        return part


def _middle(picture: Any, side: int) -> Any:
    from PIL import Image

    width, height = picture.size
    square = min(width, height)
    left, upper = (width - square) // 2, (height - square) // 2
    box = (left, upper, left + square, upper + square)
    return picture.resize((side, side), Image.Resampling.BILINEAR, box)
