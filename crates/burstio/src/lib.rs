//! burstlab's data path: staging of data sets ([`copy`]) and the lazy
//! prefetcher ([`prefetch`]), and the emulated parallel file system they are measured on ([`pfs`]).

pub mod checksum;
pub mod copy;
pub mod pfs;
pub mod prefetch;
#[cfg(feature = "python")]
mod python;
