//! burstlab's data path: staging of data sets ([`copy`]) and the lazy
//! prefetcher ([`prefetch`]).

pub mod checksum;
pub mod copy;
pub mod prefetch;
#[cfg(feature = "python")]
mod python;
