//! Samples that somebody still holds in memory, and that others may have too.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::Sample;

/// Entries before the first look for those that are gone.
const FIRST_PRUNING: usize = 1024;

/// By number; those that were dropped are forgotten by and by.
pub struct Resident<T> {
    there: HashMap<Sample, Weak<T>>,
    prune_at: usize,
}

impl<T> Resident<T> {
    pub fn new() -> Self {
        Self {
            there: HashMap::new(),
            prune_at: FIRST_PRUNING,
        }
    }

    /// A sample, if somebody holds it.
    pub fn find(&self, sample: Sample) -> Option<Arc<T>> {
        self.there.get(&sample).and_then(Weak::upgrade)
    }

    /// Somebody holds it now.
    pub fn remember(&mut self, sample: Sample, here: &Arc<T>) {
        if self.there.len() >= self.prune_at {
            self.there.retain(|_, there| there.strong_count() > 0);
            self.prune_at = (2 * self.there.len()).max(FIRST_PRUNING);
        }
        self.there.insert(sample, Arc::downgrade(here));
    }
}
