"""Minibatches from files: plain JPEG, or RecordIO as MXNet's own examples have it.

Both give the same kind of picture: its short side resized to 256/224 of the network's, a random
square of it, mirrored half the time, the mean and deviation of ImageNet taken off.
"""

import itertools
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import mxnet as mx
import numpy as np
from parameters import Parameters
from share import Share

from burstlab.errors import BurstlabError
from burstlab.training.augmentation import DEVIATION, MEAN, cut, decoded_side

AHEAD = 4  # minibatches that are read before they are wanted, as ImageRecordIter does
SEED = 20120101  # of the squares that are cut out
# How a whole file begins, and what its last bytes hold.
KINDS = {b"\xff\xd8": b"\xff\xd9", b"\x89PNG": b"IEND"}  # one file of ILSVRC2012 is a PNG
LAST_BYTES = 1024  # some have a few bytes behind their end

Batches = Iterator[tuple[np.ndarray, np.ndarray]]  # pictures (batch, 3, side, side), labels


class BadImage(BurstlabError):
    """Which file is not what it should be, and how."""


def read_whole(path: Path) -> bytes:
    """An image file. Raises BadImage where its end is missing: decoders fill the rest with grey."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadImage(f"{path}: {error.strerror}") from error
    ends = [end for start, end in KINDS.items() if content.startswith(start)]
    if not ends:
        raise BadImage(f"{path}: is no JPEG file ({len(content)} bytes)")
    if ends[0] not in content[-LAST_BYTES:]:
        raise BadImage(f"{path}: is truncated ({len(content)} bytes without an end of image)")
    return content


class JpegFiles:
    """Plain files, read and decoded by threads in an order that changes with the epoch."""

    def __init__(self, root: Path, share: Share, chosen: Parameters) -> None:
        self._root, self._share, self._chosen = root, share, chosen
        self._pool = ThreadPoolExecutor(chosen.readers)

    def epoch(self, number: int) -> Batches:
        """The minibatches of one epoch, in order. Raises BadImage."""
        batch = self._chosen.batch
        count = self._share.steps(batch) * batch
        indices = iter(self._share.epoch(number, count))
        asked: deque[list[Future[np.ndarray]]] = deque()
        labels: deque[np.ndarray] = deque()
        for some in iter(lambda: list(itertools.islice(indices, batch)), []):
            asked.append([self._pool.submit(self._picture, number, i) for i in some])
            labels.append(np.array([self._share.images[i].label for i in some], np.float32))
            if len(asked) > AHEAD:
                yield _together(asked.popleft()), labels.popleft()
        while asked:
            yield _together(asked.popleft()), labels.popleft()

    def _picture(self, epoch: int, index: int) -> np.ndarray:
        """One image as the network sees it: (3, side, side)."""
        path = self._root / self._share.images[index].path
        content = read_whole(path)
        side, random = self._chosen.side, np.random.RandomState([SEED, epoch, index])
        try:
            decoded = mx.image.imdecode(content)
            pixels = mx.image.resize_short(decoded, decoded_side(side)).asnumpy()
        except mx.base.MXNetError as error:
            raise BadImage(f"{path}: can't be decoded") from error
        return cut(pixels.transpose(2, 0, 1), side, random)


class RecordIO:
    """One record file for each rank, made from the data set before the training begins.

    What MXNet's im2rec does, but for the images' size: they stay as they are.
    """

    def __init__(self, root: Path, share: Share, chosen: Parameters, directory: Path) -> None:
        self._share, self._chosen = share, chosen
        self._stem = directory / f"train-{share.rank:05d}"
        self._pack(root)
        self._iterator: mx.io.DataIter | None = None

    def epoch(self, number: int) -> Batches:
        """The minibatches of one epoch, from this rank's file in another order each time."""
        if self._iterator is None:
            self._iterator = self._open()
        else:
            self._iterator.reset()
        for batch in itertools.islice(self._iterator, self._share.steps(self._chosen.batch)):
            yield batch.data[0], batch.label[0]

    def _pack(self, root: Path) -> None:
        index, records = f"{self._stem}.idx", f"{self._stem}.rec"
        file = mx.recordio.MXIndexedRecordIO(index, records, "w")
        for i in self._share.epoch(0, len(self._share.images)):
            header = mx.recordio.IRHeader(0, self._share.images[i].label, i, 0)
            content = read_whole(root / self._share.images[i].path)
            file.write_idx(i, mx.recordio.pack(header, content))
        file.close()
        for name in (index, records):  # what was just written must not be read from memory
            descriptor = os.open(name, os.O_RDWR)  # Gfarm syncs no file that is open to read
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    def _open(self) -> mx.io.DataIter:
        side = self._chosen.side
        colours = "rgb"
        statistics = {f"mean_{c}": float(m) for c, m in zip(colours, MEAN.flat, strict=True)}
        statistics |= {f"std_{c}": float(d) for c, d in zip(colours, DEVIATION.flat, strict=True)}
        return mx.io.ImageRecordIter(
            path_imgrec=f"{self._stem}.rec",
            path_imgidx=f"{self._stem}.idx",
            data_shape=(3, side, side),
            batch_size=self._chosen.batch,
            resize=decoded_side(side),
            rand_crop=True,
            rand_mirror=True,
            shuffle=True,
            seed=SEED % 2**31,
            seed_aug=SEED % 2**31,
            preprocess_threads=self._chosen.readers,
            prefetch_buffer=AHEAD,
            verbose=False,
            **statistics,
        )


def _together(pictures: list["Future[np.ndarray]"]) -> np.ndarray:
    return np.stack([picture.result() for picture in pictures])
