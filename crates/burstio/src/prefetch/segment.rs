//! The format of a segment file: records one after another, each saying what it is.
//!
//! A record is a header of 64 bytes and the sample's bytes. The header's checksum tells a torn or
//! foreign header; the sample's checksum, seeded with the data set's fingerprint and the sample's
//! number, tells torn, stale and misplaced bytes. So a file that was cut or overwritten anywhere
//! gives fewer samples, never wrong ones.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a record's header.
pub const HEADER: usize = 64;
const MAGIC: [u8; 8] = *b"brstseg1";

/// Which data set: two that differ in anything that matters have different ones.
pub type Fingerprint = u64;

/// One record: which sample, how long, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Position in the list of files.
    pub sample: u32,
    /// Of the sample [byte].
    pub length: u32,
    /// See [`checksum`].
    pub checksum: u64,
}

/// XXH3 of a sample's bytes, seeded with what they are bytes of.
pub fn checksum(fingerprint: Fingerprint, sample: u32, bytes: &[u8]) -> u64 {
    let seed = fingerprint ^ (u64::from(sample) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    xxh3_64_with_seed(bytes, seed)
}

impl Record {
    /// The header's bytes.
    pub fn encode(&self, fingerprint: Fingerprint) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..16].copy_from_slice(&fingerprint.to_le_bytes());
        header[16..20].copy_from_slice(&self.sample.to_le_bytes());
        header[20..24].copy_from_slice(&self.length.to_le_bytes());
        header[24..32].copy_from_slice(&self.checksum.to_le_bytes());
        let own = xxh3_64_with_seed(&header[..56], fingerprint);
        header[56..].copy_from_slice(&own.to_le_bytes());
        header
    }

    /// None where these are not the bytes of a header of this data set.
    pub fn decode(header: &[u8; HEADER], fingerprint: Fingerprint) -> Option<Self> {
        let own = xxh3_64_with_seed(&header[..56], fingerprint);
        let known = header[..8] == MAGIC
            && header[8..16] == fingerprint.to_le_bytes()
            && header[56..] == own.to_le_bytes();
        known.then(|| Self {
            sample: u32::from_le_bytes(header[16..20].try_into().expect("4 bytes")),
            length: u32::from_le_bytes(header[20..24].try_into().expect("4 bytes")),
            checksum: u64::from_le_bytes(header[24..32].try_into().expect("8 bytes")),
        })
    }
}

/// The records of a segment and where their samples begin, up to the first that is not whole.
/// The samples' own checksums are not looked at: that is for whoever reads them.
pub fn records(file: &File, fingerprint: Fingerprint) -> io::Result<Vec<(u64, Record)>> {
    let length = file.metadata()?.len();
    let mut found = Vec::new();
    let mut offset = 0;
    let mut header = [0; HEADER];
    while offset + HEADER as u64 <= length {
        file.read_exact_at(&mut header, offset)?;
        let Some(record) = Record::decode(&header, fingerprint) else {
            break;
        };
        let begin = offset + HEADER as u64;
        offset = begin + u64::from(record.length);
        if offset > length {
            break;
        }
        found.push((begin, record));
    }
    Ok(found)
}
