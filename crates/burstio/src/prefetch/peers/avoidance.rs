//! How long a peer that failed is let be.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// After its first failure; each one that follows doubles it, or a peer that hangs would be waited
/// for half of the time for ever.
const FIRST: Duration = Duration::from_secs(10);
/// This often at most: 640 s.
const DOUBLED: u32 = 6;

/// Of one peer; times are given, so tests need no clock.
#[derive(Default)]
pub struct Avoidance {
    until_ms: AtomicU64,
    failures: AtomicU32, // since it answered
}

impl Avoidance {
    /// Whether it may be asked at `now`.
    pub fn is_over(&self, now: Duration) -> bool {
        self.until_ms.load(Relaxed) <= milliseconds(now)
    }

    /// It has failed at `now`. What failed together counts once: many are asked at a time.
    pub fn failed(&self, now: Duration) {
        let doubled = self.failures.load(Relaxed).min(DOUBLED);
        let until = milliseconds(now + FIRST * (1 << doubled));
        let begin = |before| (before <= milliseconds(now)).then_some(until);
        if self.until_ms.fetch_update(Relaxed, Relaxed, begin).is_ok() {
            self.failures.fetch_add(1, Relaxed);
        }
    }

    /// It has answered.
    pub fn succeeded(&self) {
        self.failures.store(0, Relaxed);
    }
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds from a failure to when it may be asked again.
    fn length_s(avoidance: &Avoidance, now_s: u64) -> u64 {
        avoidance.failed(Duration::from_secs(now_s));
        let over = |second: &u64| avoidance.is_over(Duration::from_secs(now_s + second));
        (0..).find(over).unwrap()
    }

    #[test]
    fn it_doubles_until_the_peer_answers() {
        let avoidance = Avoidance::default();
        assert!(avoidance.is_over(Duration::ZERO));
        let lengths: Vec<_> = (1..=8).map(|i| length_s(&avoidance, 1_000 * i)).collect();
        assert_eq!(lengths, [10, 20, 40, 80, 160, 320, 640, 640]);
        avoidance.succeeded();
        assert_eq!(length_s(&avoidance, 9_000), 10);
    }

    #[test]
    fn what_fails_together_counts_once() {
        let avoidance = Avoidance::default();
        assert_eq!(length_s(&avoidance, 100), 10);
        assert_eq!(length_s(&avoidance, 104), 6);
        assert_eq!(length_s(&avoidance, 110), 20);
    }
}
