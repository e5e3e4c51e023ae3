//! How many reads are in flight, by where they read from.

/// Where a sample is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The data set's own file system.
    Source,
    /// The cache on local storage.
    Cache,
    /// The node that owns the sample.
    Peer,
}

/// Counts of reads.
#[derive(Default)]
pub struct Reads {
    source: usize,
    cache: usize,
    peers: usize,
    most_source: usize,
}

impl Reads {
    /// In flight from there.
    pub fn of(&self, from: From) -> usize {
        match from {
            From::Source => self.source,
            From::Cache => self.cache,
            From::Peer => self.peers,
        }
    }

    fn count(&mut self, from: From) -> &mut usize {
        match from {
            From::Source => &mut self.source,
            From::Cache => &mut self.cache,
            From::Peer => &mut self.peers,
        }
    }

    /// One more.
    pub fn begin(&mut self, from: From) {
        *self.count(from) += 1;
        self.most_source = self.most_source.max(self.source);
    }

    /// One has ended.
    pub fn end(&mut self, from: From) {
        *self.count(from) -= 1;
    }

    /// The most from the source at once.
    pub fn most_of_source(&self) -> usize {
        self.most_source
    }
}
