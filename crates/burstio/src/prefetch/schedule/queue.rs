//! What one consumer will take, in order, and how much of it is there.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Delivery, Sample};

enum Slot<T, E> {
    Waiting(Sample),
    Done(Delivery<T, E>),
}

/// Of samples that are in memory or being read, and behind them of those that are only planned.
pub struct Queue<T, E> {
    planned: VecDeque<Sample>,
    slots: VecDeque<Slot<T, E>>,
    head: u64,      // position of slots[0]
    wanted: usize,  // samples somebody waits for: none, or the next minibatch
    missing: usize, // of these, not there yet
}

impl<T, E> Queue<T, E> {
    pub fn new() -> Self {
        Self {
            planned: VecDeque::new(),
            slots: VecDeque::new(),
            head: 0,
            wanted: 0,
            missing: 0,
        }
    }

    /// Append.
    pub fn plan(&mut self, samples: &[Sample]) {
        self.planned.extend(samples);
    }

    /// The first sample whose reading has not begun.
    pub fn next(&self) -> Option<Sample> {
        self.planned.front().copied()
    }

    /// Samples whose reading has begun.
    pub fn ahead(&self) -> usize {
        self.slots.len()
    }

    /// All samples.
    pub fn len(&self) -> usize {
        self.planned.len() + self.slots.len()
    }

    /// Whether somebody waits for the next one.
    pub fn is_urgent(&self) -> bool {
        self.slots.len() < self.wanted
    }

    /// The next one is being read; returns its position, for `arrived`.
    pub fn wait_for_next(&mut self) -> u64 {
        let position = self.head + self.slots.len() as u64;
        if let Some(sample) = self.planned.pop_front() {
            self.slots.push_back(Slot::Waiting(sample));
        }
        position
    }

    /// The next one is in memory already; true when it was the last that somebody waits for.
    pub fn have_next(&mut self, here: Arc<T>) -> bool {
        if let Some(sample) = self.planned.pop_front() {
            self.slots.push_back(Slot::Done((sample, Ok(here))));
        }
        self.count_down(self.slots.len() - 1)
    }

    /// What was waited for at `position` is there; true when it was the last that somebody waits
    /// for.
    pub fn arrived(&mut self, position: u64, delivery: Delivery<T, E>) -> bool {
        let slot = (position - self.head) as usize;
        self.slots[slot] = Slot::Done(delivery);
        self.count_down(slot)
    }

    fn count_down(&mut self, slot: usize) -> bool {
        if slot >= self.wanted {
            return false;
        }
        self.missing -= 1;
        self.missing == 0
    }

    /// The next `count` samples (fewer at the end), once all are there. Until then None, and they
    /// are wanted.
    pub fn take(&mut self, count: usize) -> Option<Vec<Delivery<T, E>>> {
        let count = count.min(self.len());
        let there = self.slots.iter().take(count);
        let done = there.filter(|slot| matches!(slot, Slot::Done(_))).count();
        if done < count {
            self.wanted = count;
            self.missing = count - done;
            return None;
        }
        self.wanted = 0;
        self.head += count as u64;
        let taken = self.slots.drain(..count).filter_map(|slot| match slot {
            Slot::Done(delivery) => Some(delivery),
            Slot::Waiting(_) => None,
        });
        Some(taken.collect())
    }

    /// Nobody waits any more.
    pub fn give_up(&mut self) {
        self.wanted = 0;
    }

    /// The first sample that is not there, and whether its reading has begun.
    pub fn awaited(&self) -> Option<(Sample, bool)> {
        let waiting = self.slots.iter().find_map(|slot| match slot {
            Slot::Waiting(sample) => Some((*sample, true)),
            Slot::Done(_) => None,
        });
        waiting.or_else(|| self.next().map(|sample| (sample, false)))
    }

    /// Forget what is only planned; it comes back.
    pub fn unplan(&mut self) -> VecDeque<Sample> {
        self.give_up();
        std::mem::take(&mut self.planned)
    }

    /// Forget everything; what was there comes back.
    pub fn reset(&mut self) -> Vec<Arc<T>> {
        self.planned.clear();
        (self.wanted, self.missing) = (0, 0);
        self.head += self.slots.len() as u64;
        let held = self.slots.drain(..).filter_map(|slot| match slot {
            Slot::Done((_, Ok(sample))) => Some(sample),
            _ => None,
        });
        held.collect()
    }
}
