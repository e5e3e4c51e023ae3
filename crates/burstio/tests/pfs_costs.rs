//! The arithmetic of costs, at times made up here.

use burstio::pfs::costs::{Costs, DIRTY_BYTES, Emulation, SharedRate};
use proptest::prelude::*;

const USUAL: Emulation = Emulation {
    metadata_latency_ms: 1.0,
    io_latency_ms: 0.5,
    bandwidth_mb_s: 200.0,
    metadata_rate: 0.0,
};
const FREE: Emulation = Emulation {
    metadata_latency_ms: 0.0,
    io_latency_ms: 0.0,
    bandwidth_mb_s: 0.0,
    metadata_rate: 0.0,
};

fn costs(change: impl FnOnce(&mut Emulation)) -> Costs {
    let mut emulation = USUAL;
    change(&mut emulation);
    Costs::new(emulation)
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

fn arrivals() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0.0..10.0, 0.0..1e6), 1..40).prop_map(|mut arrivals: Vec<(f64, f64)>| {
        arrivals.sort_by(|one, other| one.0.total_cmp(&other.0));
        arrivals
    })
}

proptest! {
    #[test]
    fn what_arrives_since_any_moment_is_never_served_faster_than_the_rate(arrivals in arrivals()) {
        let rate = SharedRate::new(1e6);
        let ends: Vec<f64> = arrivals.iter().map(|(now, units)| rate.reserve(*units, *now)).collect();
        for (first, (since, _)) in arrivals.iter().enumerate() {
            let mut units = 0.0;
            for ((_, more), end) in arrivals[first..].iter().zip(&ends[first..]) {
                units += more;
                prop_assert!(end - since >= units / 1e6 * (1.0 - 1e-9) - 1e-9);
            }
        }
    }

    #[test]
    fn the_server_never_idles_while_somebody_waits(arrivals in arrivals()) {
        let rate = SharedRate::new(1e6);
        let mut busy_until = 0.0_f64;
        for (now, units) in arrivals {
            let end = rate.reserve(units, now);
            prop_assert!(near(end, busy_until.max(now) + units / 1e6));
            busy_until = end;
        }
    }
}

#[test]
fn time_in_which_nobody_came_is_not_saved_up() {
    let rate = SharedRate::new(10.0);
    rate.reserve(1.0, 0.0);
    assert!(near(rate.reserve(10.0, 100.0), 101.0));
}

#[test]
fn no_rate_is_no_limit() {
    assert_eq!(SharedRate::new(0.0).reserve(1e12, 5.0), 5.0);
}

#[test]
fn latencies_of_two_clients_overlap() {
    let costs = costs(|emulation| emulation.metadata_latency_ms = 2.0);
    assert!(near(costs.metadata(1.0, 1), 1.002));
    assert!(near(costs.metadata(1.0, 1), 1.002));
}

#[test]
fn operations_of_one_client_follow_each_other() {
    let costs = costs(|emulation| emulation.metadata_latency_ms = 2.0);
    assert!(near(costs.metadata(1.0, 3), 1.006));
}

#[test]
fn the_metadata_rate_is_shared() {
    let costs = costs(|emulation| {
        emulation.metadata_latency_ms = 2.0;
        emulation.metadata_rate = 100.0;
    });
    let ends: Vec<f64> = (0..50).map(|_| costs.metadata(0.0, 1)).collect();
    assert!(near(ends[49], 0.5 + 0.002));
}

#[test]
fn reads_and_writes_share_one_bandwidth() {
    let costs = costs(|emulation| {
        emulation.io_latency_ms = 1.0;
        emulation.bandwidth_mb_s = 100.0;
    });
    assert!(near(costs.transfer(0.0, 50_000_000), 0.501));
    assert!(near(costs.write_behind(0.0, 50_000_000).1, 1.0));
    assert!(near(costs.transfer(0.0, 1_000_000), 1.011));
}

#[test]
fn a_write_returns_at_once_until_the_client_holds_all_it_may() {
    let costs = costs(|emulation| {
        emulation.io_latency_ms = 1.0;
        emulation.bandwidth_mb_s = 100.0;
    });
    let (end, stored) = costs.write_behind(0.0, DIRTY_BYTES as usize);
    assert!(end <= 0.0 && near(stored, DIRTY_BYTES / 100e6));
    let (end, stored) = costs.write_behind(0.0, 1_000_000);
    assert!(near(end, 0.01));
    assert!(near(costs.commit(0.0, stored), stored + 0.001));
}

#[test]
fn a_commit_of_what_is_stored_long_since_costs_one_latency() {
    let costs = costs(|emulation| emulation.io_latency_ms = 1.0);
    assert!(near(costs.commit(10.0, 3.0), 10.001));
}

#[test]
fn nothing_is_charged_when_all_is_0() {
    let costs = Costs::new(FREE);
    assert_eq!(costs.metadata(1.0, 1), 1.0);
    assert_eq!(costs.transfer(1.0, 1_000_000_000), 1.0);
    assert_eq!(costs.commit(1.0, 0.5), 1.0);
    assert_eq!(costs.write_behind(1.0, 1_000_000_000), (1.0, 1.0));
}
