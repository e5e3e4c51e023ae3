//! The staging engine: copies the files of a manifest, whole or not at all.
//!
//! Each file is written under a partial name, `.NAME.burstlab-partial`, while its bytes are counted
//! and hashed, and gets its own name when they are what the manifest says: what has its name is
//! whole, whatever dies meanwhile. What is there already with the right size and checksum is not
//! copied again. At the end the target's file system is synchronised once: a node may lose power
//! after [`Copy::wait`] has told success without losing data, and before that nobody was told.
//! (An fsync for each file would buy nothing more, as the next staging looks at contents.)
//!
//! Bytes pass through this process, because they are hashed on their way: copy_file_range(2) would
//! have the target read once more. Only a reflink, which moves no bytes, is worth that.

mod concurrency;
mod directories;
mod engine;
mod fault;
mod file;
mod order;
mod peers;
mod receive;

pub use concurrency::MOST;
pub use engine::{Copy, Progress};
pub use fault::{CopyError, Fault};
pub use peers::{Children, Token};
pub use receive::Listening;

use crate::checksum::Checksum;

/// A file to copy.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// Relative to source and target.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// Of its content; without one only the size is compared.
    pub checksum: Option<Checksum>,
    directory: usize, // index of the directory it lies in
}

impl Entry {
    /// The file at `path`, below both roots.
    pub fn new(path: impl Into<String>, size: u64, checksum: Option<Checksum>) -> Self {
        Entry {
            path: path.into(),
            size,
            checksum,
            directory: 0,
        }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    fn parent(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(parent, _)| parent)
    }

    fn is_below_root(&self) -> bool {
        let mut parts = self.path.split('/');
        !self.path.contains('\0') && parts.all(|part| !matches!(part, "" | "." | ".."))
    }
}
