//! What an operation on the emulated parallel file system costs: arithmetic, no waiting.
//!
//! Latencies are each operation's own and overlap between clients; bandwidth and metadata rate are
//! one queue each, served in order of arrival, shared by everybody. Times are seconds of any one
//! clock, which the caller reads.

use std::sync::Mutex;

/// A client holds this much of what was written before write(2) waits for the servers: Lustre's
/// osc.*.max_dirty_mb, 32 MB as first shipped (Lustre manual, "Monitoring client activity").
pub const DIRTY_BYTES: f64 = 32e6;

/// The settings, shared by all clients of one mount. 0 means none, and no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Emulation {
    /// Milliseconds of each operation on names and attributes.
    pub metadata_latency_ms: f64,
    /// Milliseconds of each read and of each commit.
    pub io_latency_ms: f64,
    /// MB/s (1e6) of all clients together.
    pub bandwidth_mb_s: f64,
    /// Metadata operations/s of all clients together.
    pub metadata_rate: f64,
}

/// A server that serves so many units a second, first come, first served, without bursts.
pub struct SharedRate {
    unit_s: f64,
    free_at: Mutex<f64>,
}

impl SharedRate {
    /// `per_s` 0: no limit.
    pub fn new(per_s: f64) -> Self {
        Self {
            unit_s: if per_s > 0.0 { 1.0 / per_s } else { 0.0 },
            free_at: Mutex::new(f64::NEG_INFINITY),
        }
    }

    /// Queue `units` that arrive `now`; returns when the last of them is served.
    pub fn reserve(&self, units: f64, now: f64) -> f64 {
        if self.unit_s == 0.0 {
            return now;
        }
        let mut free_at = self.free_at.lock().expect("arithmetic does not panic");
        *free_at = free_at.max(now) + units * self.unit_s;
        *free_at
    }
}

/// When an operation that began `now` is over; one instance for all clients.
pub struct Costs {
    metadata_s: f64,
    io_s: f64,
    metadata: SharedRate,
    bytes: SharedRate,
    dirty_s: f64,
}

impl Costs {
    /// Of an idle file system.
    pub fn new(emulation: Emulation) -> Self {
        let bytes_s = emulation.bandwidth_mb_s * 1e6;
        Self {
            metadata_s: emulation.metadata_latency_ms / 1e3,
            io_s: emulation.io_latency_ms / 1e3,
            metadata: SharedRate::new(emulation.metadata_rate),
            bytes: SharedRate::new(bytes_s),
            dirty_s: if bytes_s > 0.0 {
                DIRTY_BYTES / bytes_s
            } else {
                0.0
            },
        }
    }

    /// `operations` of one client at the metadata server, one after the other.
    pub fn metadata(&self, now: f64, operations: u64) -> f64 {
        let operations = operations as f64;
        self.metadata.reserve(operations, now) + operations * self.metadata_s
    }

    /// A read, or a write that waits for the servers.
    pub fn transfer(&self, now: f64, size_bytes: usize) -> f64 {
        self.bytes.reserve(size_bytes as f64, now) + self.io_s
    }

    /// A write that the client holds: (its end, when its bytes are on the servers).
    pub fn write_behind(&self, now: f64, size_bytes: usize) -> (f64, f64) {
        let stored = self.bytes.reserve(size_bytes as f64, now);
        (stored - self.dirty_s, stored)
    }

    /// A close or fsync of a file whose last byte is on the servers at `stored`.
    pub fn commit(&self, now: f64, stored: f64) -> f64 {
        now.max(stored) + self.io_s
    }
}
