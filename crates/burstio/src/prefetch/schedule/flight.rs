//! A sample on its way into memory.

use super::{From, StreamId};

/// One read, whoever waits for it.
pub struct Flight {
    /// Streams, and the position each wants it for.
    pub waiters: Vec<(StreamId, u64)>,
    /// Whose place it has until it ends: its thread is one of those.
    pub begun: From,
    /// It goes on from the source.
    pub fell_back: bool,
    /// It has its memory.
    pub settled: bool,
}

impl Flight {
    /// Where it is being read now.
    pub fn reads_from(&self) -> From {
        if self.fell_back {
            From::Source
        } else {
            self.begun
        }
    }
}
