//! Why staging failed: the first file, and what is wrong with it.

use rustix::io::Errno;
use thiserror::Error;

/// The first file that could not be staged, and why.
#[derive(Debug, Clone, Error)]
#[error("{path}: {fault}")]
pub struct CopyError {
    /// Relative to the root, as in the manifest; a root itself is named in full.
    pub path: String,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What can be wrong with a file on its way from the source to the target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// Not in the source.
    #[error("missing in the source")]
    Missing,
    /// A directory, for instance.
    #[error("is not a file in the source")]
    NotAFile,
    /// The source ended before the manifest's size.
    #[error("truncated: {found} of {expected} bytes")]
    Truncated {
        /// Bytes that came.
        found: u64,
        /// Bytes in the manifest.
        expected: u64,
    },
    /// The source goes on after the manifest's size.
    #[error("changed: longer than {expected} bytes")]
    Longer {
        /// Bytes in the manifest.
        expected: u64,
    },
    /// Right size, other content.
    #[error("changed: has another checksum")]
    Changed,
    /// The source can't be opened or read.
    #[error("can't be read: {}", said(*.0))]
    Unreadable(Errno),
    /// The target has no room (left).
    #[error("no room in the target: {}", said(*.0))]
    Full(Errno),
    /// Known before anything is written.
    #[error("no room in the target: {wanted} bytes are wanted, {free} are free")]
    TooLittleSpace {
        /// Size of what is to be copied.
        wanted: u64,
        /// What this user may still write there.
        free: u64,
    },
    /// The target can't be written for another reason.
    #[error("can't be written in the target: {}", said(*.0))]
    Unwritable(Errno),
    /// Another staging writes to the same target.
    #[error("another staging is writing there: wait for it, or end it")]
    Busy,
    /// A path that leads out of the root, or is not text.
    #[error("is no path below the data set")]
    BadPath,
    /// A node of the broadcast can't be reached any more: its own error tells why.
    #[error("the connection between two nodes is lost: {}", said(*.0))]
    Peer(Errno),
    /// The broadcast ended too early.
    #[error("did not come from the parent in the tree")]
    NotSent,
    /// A panic, told on stderr.
    #[error("burstio itself failed")]
    Defect,
    /// The caller asked for it.
    #[error("cancelled")]
    Cancelled,
}

impl Fault {
    /// With the path it belongs to.
    pub fn of(self, path: impl Into<String>) -> CopyError {
        CopyError {
            path: path.into(),
            fault: self,
        }
    }

    /// A failed operation on the source.
    pub fn reading(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Fault::Missing,
            Errno::ISDIR | Errno::NXIO => Fault::NotAFile,
            other => Fault::Unreadable(other),
        }
    }

    /// A failed operation on the target.
    pub fn writing(errno: Errno) -> Self {
        match errno {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Fault::Full(errno),
            other => Fault::Unwritable(other),
        }
    }
}

fn said(errno: Errno) -> String {
    let text = std::io::Error::from_raw_os_error(errno.raw_os_error()).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
