//! How two nodes prove to each other that they are of one job and have the same data set, without
//! telling the key: each sends a number nobody has seen, and gets back a keyed hash of both.
//!
//! This keeps strangers from asking and from answering. Bytes are not encrypted: they are of a
//! data set that lies on a file system which the same network brings.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

use super::super::segment::Fingerprint;
use super::timed::Timed;

const MAGIC: [u8; 8] = *b"brstpr01";
/// SHA-256 takes this much at once (FIPS 180-4).
const BLOCK: usize = 64;

type Nonce = [u8; 32];
type Proof = [u8; 32];

/// A secret of one job; it does not show itself.
#[derive(Clone)]
pub struct Key(pub [u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Key")
    }
}

/// What both ends must have in common.
pub struct Common<'a> {
    /// Of the job.
    pub key: &'a Key,
    /// Of the data set.
    pub fingerprint: Fingerprint,
    /// The name of the node that is asked.
    pub owner: &'a str,
}

impl Common<'_> {
    /// The end that is asked: the stranger first.
    pub fn receive(&self, mut socket: Timed<'_>) -> io::Result<()> {
        let ours = nonce()?;
        socket.write_all(&[&MAGIC[..], &ours].concat())?;
        let theirs = expect_nonce(&mut socket)?;
        let proof: Proof = read(&mut socket)?;
        if !same(&proof, &self.proof(b'a', &ours, &theirs)) {
            return Err(refused());
        }
        socket.write_all(&self.proof(b'o', &ours, &theirs))
    }

    /// The end that asks.
    pub fn approach(&self, mut socket: Timed<'_>) -> io::Result<()> {
        let theirs = expect_nonce(&mut socket)?;
        let ours = nonce()?;
        let proof = self.proof(b'a', &theirs, &ours);
        socket.write_all(&[&MAGIC[..], &ours, &proof].concat())?;
        let proof: Proof = read(&mut socket)?;
        if !same(&proof, &self.proof(b'o', &theirs, &ours)) {
            return Err(refused());
        }
        Ok(())
    }

    /// `role` tells asking from owning, so that no proof can be sent back to who made it.
    fn proof(&self, role: u8, owners: &Nonce, askers: &Nonce) -> Proof {
        let fingerprint = self.fingerprint.to_le_bytes();
        let said: [&[u8]; 5] = [&[role], owners, askers, &fingerprint, self.owner.as_bytes()];
        keyed_hash(&self.key.0, &said.concat())
    }
}

fn expect_nonce(reader: &mut impl Read) -> io::Result<Nonce> {
    if read::<8>(reader)? != MAGIC {
        return Err(refused());
    }
    read(reader)
}

/// HMAC-SHA-256 (RFC 2104).
fn keyed_hash(key: &[u8; 32], message: &[u8]) -> Proof {
    let padded = |with: u8| {
        let mut pad = [with; BLOCK];
        pad.iter_mut().zip(key).for_each(|(pad, key)| *pad ^= key);
        pad
    };
    let inner = Sha256::new()
        .chain_update(padded(0x36))
        .chain_update(message);
    let outer = Sha256::new().chain_update(padded(0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

/// Without telling by the time it takes how much of it is right.
fn same(one: &Proof, other: &Proof) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differing) == 0
}

fn nonce() -> io::Result<Nonce> {
    read(&mut File::open("/dev/urandom")?)
}

fn refused() -> io::Error {
    let message = "not a peer of this job and data set";
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// Exactly `N` bytes.
pub fn read<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_hashes_are_those_of_the_standard() {
        // RFC 4231, 4.3; HMAC pads short keys with zeros itself.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let hash = keyed_hash(&key, b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(crate::checksum::parse(expected), Some(hash));
    }

    #[test]
    fn a_key_does_not_show_itself() {
        assert_eq!(format!("{:?}", Key([7; 32])), "Key");
    }
}
