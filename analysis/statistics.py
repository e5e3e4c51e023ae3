"""The statistics on every figure: median with a bootstrap interval, histogram in log time.

Each is a small frozen dataclass made from a sample by ``of``; none knows about records or axes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 9_999
SEED = 20_210_727  # any fixed value: the same records give the same figure
SMALLEST_SAMPLE = 3
BINS_PER_DECADE = 8  # as in Pwrake's own report of command times
SHORTEST_S = 1e-3  # resolution of the workloads' clocks; a log axis has no place for 0


@dataclass(frozen=True, slots=True)
class Median:
    """Median of a sample, in the sample's unit, and its percentile-bootstrap interval.

    ``low`` and ``high`` are None where no interval can be had: fewer than three values, or all
    values equal. The interval never leaves the range of the sample, so that with three values it
    covers the true median in fewer than 95 % of cases (75 % at best).
    """

    n: int
    median: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Raises ValueError for an empty sample or one with a value that is no finite number."""
        sample = np.sort(np.asarray(list(values), dtype=float))  # the order must not matter
        if sample.size == 0 or not np.isfinite(sample).all():
            raise ValueError(f"a median needs finite numbers, not {sample.tolist()}")
        middle = float(np.median(sample))
        if sample.size < SMALLEST_SAMPLE or np.ptp(sample) == 0:
            return cls(int(sample.size), middle, None, None)
        from scipy import stats  # takes a second, and histograms don't need it

        interval = stats.bootstrap(
            (sample,),
            np.median,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(SEED),
        ).confidence_interval
        return cls(int(sample.size), middle, float(interval.low), float(interval.high))


@dataclass(frozen=True, slots=True)
class LogHistogram:
    """Counts of durations [s] in bins of 1/8 decade; bin k spans 10^(k/8) to 10^((k+1)/8) s.

    Only the bins from the first to the last occupied one are held; ``first`` is the first's k.
    A duration below the clock's resolution of 1 ms counts in the bin that starts there.
    """

    first: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, durations_s: Iterable[float]) -> Self:
        """Raises ValueError for a duration that is negative or no finite number."""
        sample = np.asarray(list(durations_s), dtype=float)
        if not np.isfinite(sample).all() or (sample < 0).any():
            raise ValueError("a histogram of durations needs finite numbers of 0 s or more")
        if sample.size == 0:
            return cls(0, ())
        bins = np.array([log_bin(value) for value in sample])
        counts = np.bincount(bins - bins.min())
        return cls(int(bins.min()), tuple(int(count) for count in counts))

    @property
    def edges_s(self) -> tuple[float, ...]:
        """Bin edges [s], one more than there are counts."""
        return tuple(log_edge_s(self.first + i) for i in range(len(self.counts) + 1))


def log_bin(duration_s: float) -> int:
    """Number k of the 1/8-decade bin which holds a duration of 0 s or more."""
    value = max(duration_s, SHORTEST_S)
    k = math.floor(math.log10(value) * BINS_PER_DECADE)
    # rounding of log10 may put a value at an edge on the wrong side of it
    return k - (value < log_edge_s(k)) + (value >= log_edge_s(k + 1))


def log_edge_s(k: int) -> float:
    """Lower edge [s] of the 1/8-decade bin k."""
    return float(10 ** (k / BINS_PER_DECADE))
