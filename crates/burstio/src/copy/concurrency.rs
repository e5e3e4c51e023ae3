//! How many files to have in flight: decisions only, no clock.
//!
//! By Little's law a source of latency L gives n files in flight n/L files per second, until it is
//! saturated. So the number is doubled for as long as that pays, and stays at the least that
//! reached the best rate: more would only make others wait.

/// Before anything is known.
pub const FIRST: usize = 64;
/// Files that a shared file system is asked for at once by one node, at most.
pub const MOST: usize = 256;

const WORTH_IT: f64 = 1.04; // rate after doubling, over the rate before
const SLUMP: f64 = 0.6;
const WINDOWS_BETWEEN_TRIALS: u32 = 20;

/// A file's share in the work, in bytes: what it costs apart from its length.
const FILE_BYTES: f64 = 64.0 * 1024.0;

/// Finds the number of files in flight, from what each time window brought.
#[derive(Debug)]
pub struct Controller {
    limit: usize,
    most: usize,
    settled: Option<Settled>,
    best: f64, // work per second at `kept`
    kept: usize,
}

#[derive(Debug)]
struct Settled {
    windows: u32,
    slumps: u32,
}

impl Controller {
    /// With at most `most` in flight.
    pub fn new(most: usize) -> Self {
        let most = most.max(1);
        let limit = FIRST.min(most);
        Controller {
            limit,
            most,
            settled: None,
            best: 0.0,
            kept: limit,
        }
    }

    /// Files that may be in flight now.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What a window of `elapsed_s` seconds brought, in which the limit was in force and reached.
    pub fn observe(&mut self, elapsed_s: f64, files: u64, bytes: u64) {
        if files == 0 && bytes == 0 {
            return; // a source that stalls tells nothing
        }
        let rate = (files as f64 * FILE_BYTES + bytes as f64) / elapsed_s;
        match &mut self.settled {
            None => self.climb(rate),
            Some(settled) => {
                settled.windows += 1;
                settled.slumps = if rate < SLUMP * self.best {
                    settled.slumps + 1
                } else {
                    0
                };
                if settled.slumps >= 3 || settled.windows >= WINDOWS_BETWEEN_TRIALS {
                    self.settled = None; // the source has changed, or may have
                    self.best = rate;
                    self.limit = (2 * self.kept).min(self.most);
                }
            }
        }
    }

    fn climb(&mut self, rate: f64) {
        if rate >= WORTH_IT * self.best {
            self.best = rate;
            self.kept = self.limit;
            self.limit = (2 * self.limit).min(self.most);
            if self.limit > self.kept {
                return;
            }
        }
        self.limit = self.kept;
        self.settled = Some(Settled {
            windows: 0,
            slumps: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of fixed latency that serves at most `most_per_s` files a second.
    fn run(controller: &mut Controller, latency_s: f64, most_per_s: f64, windows: usize) -> usize {
        for _ in 0..windows {
            let rate = (controller.limit() as f64 / latency_s).min(most_per_s);
            controller.observe(1.0, rate as u64, 0);
        }
        controller.limit()
    }

    #[test]
    fn latency_bound_source_gets_all_there_is() {
        assert_eq!(run(&mut Controller::new(MOST), 0.025, 1e9, 6), MOST);
    }

    #[test]
    fn saturated_source_is_not_pressed() {
        let mut controller = Controller::new(MOST);
        assert_eq!(run(&mut controller, 0.001, 2000.0, 4), FIRST);
        let limit = run(&mut Controller::new(MOST), 0.010, 5000.0, 8);
        assert!((50..=64).contains(&limit), "{limit}: 50 are enough");
    }

    #[test]
    fn source_that_became_slower_is_tried_again() {
        let mut controller = Controller::new(MOST);
        run(&mut controller, 0.001, 5000.0, 6);
        assert!(run(&mut controller, 0.050, 5000.0, 15) > 128);
    }

    #[test]
    fn politeness_cap_holds() {
        assert_eq!(run(&mut Controller::new(5), 0.025, 1e9, 50), 5);
    }
}
