//! How many reads of the source are in flight: Little's law between a floor and a politeness cap.
//!
//! Reads in flight = rate x latency (Little 1961). The rate that is wanted is what the consumer
//! takes while it does not wait; it is unknown while it always waits. So: as long as somebody
//! waits for the source, the depth grows while the rate grows with it; when nobody waits, it
//! falls towards wanted rate x measured latency. Times are given, so tests need no clock.

use std::time::Duration;

/// More than the law says, because latencies vary.
const HEADROOM: f64 = 1.5;
/// A deeper queue that brings less than this is only a longer queue.
const WORTHWHILE: f64 = 1.1;
/// Rounds at a depth that was found best before a deeper one is tried again.
const PATIENCE: u32 = 16;
/// Weight of the newest value in running means.
const NEWEST: f64 = 0.2;

/// The limit of reads in flight, adapted after every round of as many reads as it allows.
#[derive(Debug)]
pub struct Depth {
    floor: usize,
    cap: usize,
    limit: usize,
    latency_s: f64,
    demand: f64, // samples/s that the consumers take while they do not wait; 0 = unknown
    round: Round,
    before: Option<(usize, f64)>, // depth and rate before the last growth
    settled: u32,
    stale: usize, // reads still to come that were begun at another depth
}

#[derive(Debug, Default)]
struct Round {
    started: Duration,
    reads: usize,
    starved: bool,
}

impl Depth {
    /// `floor..=cap` reads; equal ones fix the depth. It starts at `start`, within these.
    pub fn new(floor: usize, cap: usize, start: usize) -> Self {
        let floor = floor.max(1);
        let cap = cap.max(floor);
        Self {
            floor,
            cap,
            limit: start.clamp(floor, cap),
            latency_s: 0.0,
            demand: 0.0,
            round: Round::default(),
            before: None,
            settled: 0,
            stale: 0,
        }
    }

    /// Reads that may be in flight now.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The most that may ever be.
    pub fn cap(&self) -> usize {
        self.cap
    }

    /// Running mean of a read's latency [s].
    pub fn latency_s(&self) -> f64 {
        self.latency_s
    }

    /// Somebody waits for a read of the source.
    pub fn starved(&mut self) {
        self.round.starved = true;
    }

    /// A consumer took `samples` and came back for more after `busy` of its own work.
    pub fn consumed(&mut self, samples: usize, busy: Duration) {
        let rate = samples as f64 / busy.as_secs_f64().max(1e-6);
        self.demand = blend(self.demand, rate);
    }

    /// A read has ended, at time `now` since some fixed moment.
    pub fn finished(&mut self, latency: Duration, now: Duration) {
        self.latency_s = blend(self.latency_s, latency.as_secs_f64());
        if self.stale > 0 {
            self.stale -= 1;
            self.round.started = now;
            return;
        }
        if self.round.reads == 0 && self.round.started.is_zero() {
            self.round.started = now.saturating_sub(latency);
        }
        self.round.reads += 1;
        if self.round.reads >= self.limit {
            let elapsed = now.saturating_sub(self.round.started).as_secs_f64();
            let rate = self.round.reads as f64 / elapsed.max(1e-6);
            let starved = self.round.starved;
            self.round = Round {
                started: now,
                ..Round::default()
            };
            self.adapt(rate, starved);
        }
    }

    fn adapt(&mut self, rate: f64, starved: bool) {
        if !starved {
            let wanted = (self.demand * self.latency_s * HEADROOM).ceil() as usize;
            let lower = self.limit - self.limit / 8;
            self.set(self.limit.min(wanted.max(lower)));
            self.before = None;
            return;
        }
        match self.before.take() {
            Some((depth, earlier)) if rate < earlier * WORTHWHILE => {
                self.set(depth);
                self.settled = PATIENCE;
            }
            _ if self.settled > 0 => self.settled -= 1,
            _ => {
                self.before = Some((self.limit, rate));
                self.set(self.limit * 2);
            }
        }
    }

    fn set(&mut self, depth: usize) {
        let depth = depth.clamp(self.floor, self.cap);
        if depth != self.limit {
            self.stale = self.limit;
            self.limit = depth;
        }
    }
}

fn blend(mean: f64, newest: f64) -> f64 {
    if mean == 0.0 {
        newest
    } else {
        mean + NEWEST * (newest - mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source with a latency and a highest rate, read by a consumer that never works.
    fn depth_after(rounds: usize, latency_s: f64, highest_rate: f64, floor: usize) -> usize {
        let mut depth = Depth::new(floor, 256, floor);
        let mut now = 0.0;
        for _ in 0..rounds {
            let limit = depth.limit();
            let took = latency_s.max(limit as f64 / highest_rate);
            depth.starved();
            now += took;
            for _ in 0..limit {
                depth.finished(Duration::from_secs_f64(took), Duration::from_secs_f64(now));
            }
        }
        depth.limit()
    }

    #[test]
    fn grows_to_the_cap_where_every_read_more_helps() {
        assert_eq!(depth_after(12, 0.025, 1e9, 8), 256);
    }

    #[test]
    fn stops_growing_where_the_source_gives_no_more() {
        // 1000/s at 25 ms are 25 in flight: 32 is enough, 64 only waits longer.
        assert_eq!(depth_after(12, 0.025, 1000.0, 8), 32);
    }

    #[test]
    fn falls_to_what_the_consumer_takes() {
        let mut depth = Depth::new(8, 256, 256);
        let mut now = Duration::ZERO;
        for _ in 0..80 {
            depth.consumed(32, Duration::from_millis(64)); // 500/s: 12.5 in flight
            for _ in 0..depth.limit() {
                now += Duration::from_millis(2);
                depth.finished(Duration::from_millis(25), now);
            }
        }
        assert_eq!(depth.limit(), 19); // 12.5 and the headroom
    }

    #[test]
    fn a_fixed_depth_stays() {
        assert_eq!(Depth::new(4, 4, 32).limit(), 4);
    }
}
