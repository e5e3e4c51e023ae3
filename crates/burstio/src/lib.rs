//! burstlab's data path: staging of data sets ([`copy`]).

pub mod checksum;
pub mod copy;
#[cfg(feature = "python")]
mod python;
