"""The arithmetic of costs, at times made up here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burstlab.pfs.costs import DIRTY_BYTES, Costs, SharedRate
from burstlab.pfs.emulation import Emulation

ARRIVALS = st.lists(st.tuples(st.floats(0, 10), st.integers(0, 10**6)), min_size=1)
FREE = Emulation(metadata_latency_ms=0, io_latency_ms=0, bandwidth_mb_s=0, metadata_rate=0)


@given(ARRIVALS)
def test_what_arrives_since_any_moment_is_never_served_faster_than_the_rate(arrivals):
    rate, arrivals = SharedRate(1e6), sorted(arrivals)
    ends = [rate.reserve(units, now) for now, units in arrivals]
    for first, (since, _) in enumerate(arrivals):
        units = 0
        for (_, more), end in zip(arrivals[first:], ends[first:], strict=True):
            units += more
            assert end - since >= units / 1e6 * (1 - 1e-9) - 1e-9


@given(ARRIVALS)
def test_the_server_never_idles_while_somebody_waits(arrivals):
    rate, arrivals = SharedRate(1e6), sorted(arrivals)
    busy_until = 0.0
    for now, units in arrivals:
        end = rate.reserve(units, now)
        assert end == pytest.approx(max(busy_until, now) + units / 1e6)
        busy_until = end


def test_time_in_which_nobody_came_is_not_saved_up():
    rate = SharedRate(10)
    rate.reserve(1, 0)
    assert rate.reserve(10, 100) == pytest.approx(101)


def test_no_rate_is_no_limit():
    assert SharedRate(0).reserve(10**12, 5) == 5


def test_latencies_of_two_clients_overlap():
    costs = Costs(Emulation(metadata_latency_ms=2, metadata_rate=0))
    assert costs.metadata(1.0) == costs.metadata(1.0) == pytest.approx(1.002)


def test_operations_of_one_client_follow_each_other():
    costs = Costs(Emulation(metadata_latency_ms=2, metadata_rate=0))
    assert costs.metadata(1.0, operations=3) == pytest.approx(1.006)


def test_the_metadata_rate_is_shared():
    costs = Costs(Emulation(metadata_latency_ms=2, metadata_rate=100))
    ends = [costs.metadata(0.0) for _ in range(50)]
    assert ends[-1] == pytest.approx(0.5 + 0.002)


def test_reads_and_writes_share_one_bandwidth():
    costs = Costs(Emulation(io_latency_ms=1, bandwidth_mb_s=100))
    assert costs.transfer(0.0, 50_000_000) == pytest.approx(0.501)
    assert costs.write_behind(0.0, 50_000_000)[1] == pytest.approx(1.0)
    assert costs.transfer(0.0, 1_000_000) == pytest.approx(1.011)


def test_a_write_returns_at_once_until_the_client_holds_all_it_may():
    costs = Costs(Emulation(io_latency_ms=1, bandwidth_mb_s=100))
    end, stored = costs.write_behind(0.0, int(DIRTY_BYTES))
    assert end <= 0.0 and stored == pytest.approx(DIRTY_BYTES / 100e6)
    end, stored = costs.write_behind(0.0, 1_000_000)
    assert end == pytest.approx(0.01)
    assert costs.commit(0.0, stored) == pytest.approx(stored + 0.001)


def test_a_commit_of_what_is_stored_long_since_costs_one_latency():
    costs = Costs(Emulation(io_latency_ms=1))
    assert costs.commit(10.0, 3.0) == pytest.approx(10.001)


def test_nothing_is_charged_when_all_is_0():
    costs = Costs(FREE)
    assert costs.metadata(1.0) == costs.transfer(1.0, 10**9) == costs.commit(1.0, 0.5) == 1.0
    assert costs.write_behind(1.0, 10**9) == (1.0, 1.0)


def test_the_flags_say_the_same_again():
    assert Emulation(metadata_rate=2500).arguments() == [
        *("--metadata-latency-ms", "1", "--io-latency-ms", "0.5"),
        *("--bandwidth-mb-s", "200", "--metadata-rate", "2500"),
    ]
