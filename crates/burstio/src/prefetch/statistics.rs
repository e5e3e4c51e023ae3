//! What happened, in numbers that a record can keep.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Waits are counted by powers of two of a microsecond: bucket i is below 2^i us.
pub const WAIT_BUCKETS: usize = 32;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of one engine; every field is also a name in [`Statistics::all`].
        #[derive(Default)]
        pub struct Statistics {
            $($(#[$doc])* pub $name: AtomicU64,)*
            /// Minibatches by how long their consumer waited for them.
            pub waits: [AtomicU64; WAIT_BUCKETS],
        }

        impl Statistics {
            /// Names and values of all counters, in the order of their declaration.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.load(Relaxed)),)*]
            }
        }
    };
}

counters! {
    /// Files opened on the source.
    source_opens,
    /// Bytes read from the source.
    source_bytes,
    /// Reads of the source that failed.
    source_errors,
    /// Samples delivered that were read from the source for it.
    from_source,
    /// Samples delivered that were read from the cache.
    from_cache,
    /// Samples delivered that their owner gave.
    from_peers,
    /// Bytes that owners gave.
    peer_bytes,
    /// Questions that owners did not answer, or wrongly: the source was read.
    peer_errors,
    /// Samples given to peers.
    served_to_peers,
    /// Bytes read from the cache.
    cache_bytes_read,
    /// Bytes written to the cache.
    cache_bytes_written,
    /// Samples in the cache.
    cache_samples,
    /// Samples that a former run left in the cache.
    cache_adopted,
    /// Samples whose copy in the cache failed its checksum, and which were read from the source.
    checksum_failures,
    /// Samples that were not written because the writer was behind.
    writes_skipped,
    /// 1 when the cache has stopped growing: its budget is used up or the disk is full.
    cache_full,
    /// Samples that did not fit into the budget's memory while somebody waited for them.
    beyond_budget,
    /// Minibatches delivered.
    minibatches,
    /// Microseconds that consumers waited for minibatches.
    wait_us,
    /// Microseconds from the first plan to the first sample in memory.
    first_sample_us,
    /// Microseconds from the first plan to the first minibatch.
    first_minibatch_us,
}

impl Statistics {
    /// One more of `counter`.
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// `bytes` more of `counter`.
    pub fn add(counter: &AtomicU64, bytes: usize) {
        counter.fetch_add(bytes as u64, Relaxed);
    }

    /// A consumer waited this long for a minibatch.
    pub fn waited(&self, wait: Duration) {
        let us = wait.as_micros() as u64;
        let bucket = (u64::BITS - us.leading_zeros()) as usize;
        self.waits[bucket.min(WAIT_BUCKETS - 1)].fetch_add(1, Relaxed);
        self.wait_us.fetch_add(us, Relaxed);
        self.minibatches.fetch_add(1, Relaxed);
    }

    /// The histogram of waits: minibatches that waited less than 2^i us and not less than half.
    pub fn waits(&self) -> [u64; WAIT_BUCKETS] {
        std::array::from_fn(|i| self.waits[i].load(Relaxed))
    }
}
