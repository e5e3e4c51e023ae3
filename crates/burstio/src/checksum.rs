//! SHA-256, as manifests have it (`burstlab.dataset.manifest`).

use sha2::{Digest, Sha256};

/// SHA-256 of a file's content.
pub type Checksum = [u8; 32];

/// From 64 hexadecimal digits; `None` for anything else.
pub fn parse(digits: &str) -> Option<Checksum> {
    let mut checksum = Checksum::default();
    if digits.len() != 2 * checksum.len() || !digits.is_ascii() {
        return None;
    }
    for (byte, at) in checksum.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(checksum)
}

/// Of bytes that come piece by piece.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// The next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all pieces.
    pub fn finish(self) -> Checksum {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_pieces_agree() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; // of "abc"
        let mut hasher = Hasher::default();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(parse(known), Some(hasher.finish()));
    }

    #[test]
    fn what_is_no_checksum_is_refused() {
        for text in ["", "ab", &"g".repeat(64), &"é".repeat(32), &"+".repeat(64)] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
