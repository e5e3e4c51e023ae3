//! Who gets memory: samples that are read ahead from the budget's, and only those that somebody is
//! waiting for right now beyond it, or a full memory would wait for itself.

use super::memory::{Memory, pages};
use super::schedule::Sample;

/// A size that is not known yet.
pub const UNKNOWN: u64 = u64::MAX;
/// What a sample of unknown size is taken for until one has been seen [byte].
const GUESS: usize = 128 << 10;

/// Where the bytes of a sample go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this offset of the budget's memory.
    Offset(usize),
    /// In memory of its own, because somebody waits for it and the budget's is full.
    Own,
}

/// The budget, and what is known of the sizes of those who want a part of it.
pub struct Admission {
    sizes: Vec<u64>,
    typical: usize,   // the largest seen, as a guess of those to come
    beyond: usize,    // bytes outside the budget's memory
    unsettled: usize, // samples being read whose size is not known yet
    /// The budget's memory.
    pub memory: Memory,
}

impl Admission {
    /// `sizes` of all samples [byte], each known or [`UNKNOWN`].
    pub(super) fn new(sizes: Vec<u64>, memory: Memory) -> Self {
        Self {
            sizes,
            typical: GUESS,
            beyond: 0,
            unsettled: 0,
            memory,
        }
    }

    /// Memory for a sample about to be read: None where it must wait, Some(None) where its size
    /// is not known yet and there should be enough; `settle` is to be called for that one.
    pub(super) fn admit(&mut self, sample: Sample, urgent: bool) -> Option<Option<(usize, Place)>> {
        let size = self.sizes[sample as usize];
        if size == UNKNOWN {
            let admitted = urgent || self.has_room();
            self.unsettled += usize::from(admitted);
            return admitted.then_some(None);
        }
        let size = size as usize;
        let place = match self.range(size) {
            None if urgent => self.beyond(size),
            found => found?,
        };
        Some(Some((size, place)))
    }

    /// The size of a sample is known from now on.
    pub(super) fn learn(&mut self, sample: Sample, size: usize) {
        self.sizes[sample as usize] = size as u64;
        self.typical = self.typical.max(size);
    }

    /// A sample that was admitted without a place has one, or needs none any more.
    pub(super) fn settle(&mut self) {
        self.unsettled -= 1;
    }

    /// Memory for `size` bytes: of the budget, or beyond it.
    pub(super) fn place(&mut self, size: usize) -> Place {
        self.range(size).unwrap_or_else(|| self.beyond(size))
    }

    /// What was given for `size` bytes comes back.
    pub(super) fn give_back(&mut self, place: Place, size: usize) {
        match place {
            Place::Offset(offset) => self.memory.give_back(offset, size),
            Place::Own => self.beyond -= pages(size),
        }
    }

    /// Whether there should be memory for one more sample of unknown size.
    pub(super) fn has_room(&self) -> bool {
        let expected = (self.unsettled + 1) * pages(self.typical);
        expected + self.beyond <= self.memory.free_bytes()
    }

    fn range(&mut self, size: usize) -> Option<Place> {
        self.memory.take(size).map(Place::Offset)
    }

    fn beyond(&mut self, size: usize) -> Place {
        self.beyond += pages(size);
        Place::Own
    }
}
