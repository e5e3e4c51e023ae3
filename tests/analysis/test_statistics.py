"""Golden values of the statistics, worked out by hand, and what must hold for any sample."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics import LogHistogram, Median

FINITE = st.floats(-1e6, 1e6)
DURATIONS = st.lists(st.floats(0, 1e5), min_size=1, max_size=60)


def test_interval_of_three_values_is_their_range() -> None:
    """A resample's median is the smallest of 3 in 7/27 of cases: more than the 2.5 % cut off."""
    assert Median.of([9.0, 1.0, 2.0]) == Median(n=3, median=2.0, low=1.0, high=9.0)


def test_interval_of_seven_values_drops_both_extremes() -> None:
    """Binomial(7, 1/7) is 4 or more in 1.0 %, Binomial(7, 2/7) in 11 %: the cut is between."""
    values = [3.0, 50.0, 4.0, 7.0, 1.0, 6.0, 5.0]
    assert Median.of(values) == Median(n=7, median=5.0, low=3.0, high=7.0)


@pytest.mark.parametrize("values", [[4.0], [4.0, 6.0], [5.0, 5.0, 5.0, 5.0]])
def test_no_interval_where_none_can_be_had(values: list[float]) -> None:
    median = Median.of(values)
    assert (median.low, median.high) == (None, None)
    assert median.n == len(values)
    assert median.median == sum(values) / len(values)


@pytest.mark.parametrize("values", [[], [1.0, math.nan, 2.0], [math.inf]])
def test_no_median_of_nothing_and_of_what_is_no_number(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        Median.of(values)


@given(st.lists(FINITE, min_size=3, max_size=12), st.randoms())
def test_interval_holds_the_median_and_does_not_depend_on_order(values, random) -> None:
    median = Median.of(values)
    shuffled = list(values)
    random.shuffle(shuffled)
    assert Median.of(shuffled) == median
    if median.low is not None and median.high is not None:
        ordered = [min(values), median.low, median.median, median.high, max(values)]
        rounding = 1e-9 * max(map(abs, values))
        assert all(a <= b + rounding for a, b in pairwise(ordered))


def test_bins_are_eighths_of_a_decade_that_start_at_powers_of_ten() -> None:
    histogram = LogHistogram.of([0.1, 0.1, 0.13, 0.99, 1.0])
    assert histogram.edges_s[0] == pytest.approx(0.1)
    assert histogram.edges_s[1] == pytest.approx(0.1 * 10 ** (1 / 8))
    assert histogram.counts == (3, 0, 0, 0, 0, 0, 0, 1, 1)


def test_times_below_the_clocks_resolution_count_in_the_bin_of_1_ms() -> None:
    histogram = LogHistogram.of([0.0, 0.0004, 0.001])
    assert (histogram.counts, histogram.edges_s[0]) == ((3,), pytest.approx(0.001))


@pytest.mark.parametrize("durations", [[-0.1], [1.0, math.nan]])
def test_no_histogram_of_what_is_no_duration(durations: list[float]) -> None:
    with pytest.raises(ValueError, match="0 s or more"):
        LogHistogram.of(durations)


@given(DURATIONS)
def test_every_duration_is_counted_once_between_its_edges(durations: list[float]) -> None:
    histogram = LogHistogram.of(durations)
    edges = histogram.edges_s
    for low, high, count in zip(edges, edges[1:], histogram.counts, strict=False):
        assert sum(low <= max(value, 1e-3) < high for value in durations) == count
    assert sum(histogram.counts) == len(durations)
    assert histogram.counts[0] > 0
    assert histogram.counts[-1] > 0
