//! Nodes that read for one another: every sample has one owner, which alone caches it, and which
//! the other nodes ask for it. So the caches of all nodes together hold what none holds alone, and
//! the source is read once, not once by every node.
//!
//! # Why nobody waits for ever
//!
//! A node that waits for a peer waits for the peer's [`serving`] thread; that one waits for a read
//! of the peer's own cache or of the source, and for no other node: it refuses samples that its
//! node does not own, so no question is ever passed on. Such a read needs memory and a reader's
//! thread. Memory there always is, beyond the budget if need be, because the question is waited
//! for ([`super::admission`]). Threads there are as many as reads of the source, of the cache and
//! of peers may be in flight together, and each of the three has its own limit
//! ([`super::schedule`]): those that wait for peers are never those that a peer waits for. Who gets
//! no answer reads the source in the same thread, and counts among those that wait for peers until
//! it has. What is left is a source, a disk or a peer that hangs, and each has a time limit.

mod asking;
mod avoidance;
mod greeting;
mod ownership;
mod serving;
mod timed;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

pub(super) use asking::Peers;
pub use greeting::Key;
pub use ownership::Ownership;
pub(super) use serving::serve;

/// Questions to peers in flight, at most: each is a connection, and a thread at both ends.
pub const PEER_READS: usize = 64;

/// A node among its peers.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// This node's name.
    pub name: String,
    /// Where each node listens, by name, this one among them.
    pub addresses: BTreeMap<String, SocketAddr>,
    /// Where this one does.
    pub listener: Arc<TcpListener>,
    /// Known to the nodes of a job, and to nobody else.
    pub key: Key,
}

/// In the place of a sample's length: it can't be had here.
const REFUSED: u32 = u32::MAX;

/// An answer's first bytes: the sample's length, and its checksum as in a cache's record.
struct Header {
    length: u32,
    checksum: u64,
}

impl Header {
    const BYTES: usize = 12;

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let (length, checksum) = bytes.split_at(4);
        Self {
            length: u32::from_le_bytes(length.try_into().expect("4 bytes")),
            checksum: u64::from_le_bytes(checksum.try_into().expect("8 bytes")),
        }
    }
}
