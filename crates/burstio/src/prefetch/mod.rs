//! The lazy prefetcher: samples of a data set in a known order, from the source through memory to
//! the consumer, and behind its back to a cache on local storage.
//!
//! [`engine::Engine`] reads with threads what [`schedule::Schedule`] decides; every consumer has a
//! [`Stream`], plans on it what it will take, and takes it in that order.
//!
//! ```
//! use burstio::prefetch::{Engine, EngineOptions, Source};
//! # fn main() -> std::io::Result<()> {
//! let directory = tempfile::tempdir()?;
//! std::fs::write(directory.path().join("a"), b"first")?;
//! std::fs::write(directory.path().join("b"), b"second")?;
//! let files: [(&[u8], Option<u64>); 2] = [(b"a", None), (b"b", Some(6))];
//! let source = Source::new(directory.path().into(), files.into_iter(), "");
//! let engine = Engine::new(source, EngineOptions::default())?;
//! let mut stream = engine.stream();
//! stream.plan(&[1, 0, 1]).expect("there are two files");
//! let batch = stream.take(2, || true).expect("they can be read");
//! assert_eq!((*batch[0].1).as_ref(), b"second");
//! # Ok(())
//! # }
//! ```

mod accepting;
pub mod admission;
pub mod agent;
pub mod board;
mod bytes;
pub mod cache;
pub mod depth;
pub mod engine;
pub mod memory;
pub mod mount;
pub mod order;
pub mod peers;
mod reading;
pub mod region;
pub mod schedule;
pub mod segment;
pub mod source;
pub mod statistics;
mod stream;
pub mod sync;

pub use bytes::Bytes;
pub use cache::CacheOptions;
pub use engine::{Engine, EngineOptions};
pub use source::{ReadError, Source};
pub use stream::{Stream, TakeError};
