//! A small data set, and a consumer that knows what every sample must be.
#![allow(dead_code)] // every test uses a part of it

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burstio::prefetch::{CacheOptions, Engine, Source};
use tempfile::TempDir;

/// What file `i` of so many bytes holds: no two have the same.
fn content(i: u32, length: u32) -> Vec<u8> {
    (0..length)
        .map(|at| (at.wrapping_mul(i + 1) >> 3) as u8)
        .collect()
}

pub struct Set {
    pub directory: TempDir,
    sizes: Vec<u32>,
}

impl Set {
    /// No two of the same length.
    pub fn new(count: u32) -> Self {
        Self::of_sizes((0..count).map(|i| 1000 + 37 * i).collect())
    }

    pub fn of_sizes(sizes: Vec<u32>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("data")).unwrap();
        let set = Self { directory, sizes };
        for i in 0..set.count() {
            fs::write(set.file(i), set.content(i)).unwrap();
        }
        set
    }

    pub fn count(&self) -> u32 {
        self.sizes.len() as u32
    }

    pub fn content(&self, i: u32) -> Vec<u8> {
        content(i, self.sizes[i as usize])
    }

    pub fn file(&self, i: u32) -> PathBuf {
        self.directory.path().join(format!("data/{i}"))
    }

    /// From now on open(2) of this file does not return until somebody writes it, like that of a
    /// file on a hanging mount.
    pub fn stall(&self, i: u32) {
        fs::remove_file(self.file(i)).unwrap();
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, self.file(i), kind, 0o600.into(), 0).unwrap();
    }

    /// It goes on, and finds that this is no file any more.
    pub fn go_on(&self, i: u32) {
        drop(fs::File::options().write(true).open(self.file(i)).unwrap());
    }

    pub fn source(&self, with_sizes: bool) -> Source {
        let sizes = self
            .sizes
            .iter()
            .map(|size| with_sizes.then(|| u64::from(*size)));
        self.source_of(sizes, "test")
    }

    /// The same files as another data set.
    pub fn other_source(&self) -> Source {
        self.source_of(self.sizes.iter().map(|_| None), "a newer version")
    }

    fn source_of(&self, sizes: impl Iterator<Item = Option<u64>>, identity: &str) -> Source {
        let names: Vec<_> = (0..self.count()).map(|i| format!("data/{i}")).collect();
        let files = names.iter().map(|name| name.as_bytes()).zip(sizes);
        Source::new(self.directory.path().into(), files, identity)
    }

    pub fn cache_directory(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// In segments, ended with the engine.
    pub fn cache(&self, budget_bytes: u64) -> CacheOptions {
        CacheOptions {
            directory: self.cache_directory(),
            budget_bytes,
            keep_free: 0.0,
            segments: true,
            keep: false,
        }
    }

    /// Take all that is planned, in minibatches; every sample must be the right one.
    pub fn epoch(&self, engine: &Engine, order: &[u32], batch: usize) {
        let mut stream = engine.stream();
        stream.plan(order).unwrap();
        for expected in order.chunks(batch) {
            let taken = stream.take(batch, || true).unwrap();
            assert_eq!(taken.iter().map(|(i, _)| *i).collect::<Vec<_>>(), expected);
            for (i, bytes) in taken {
                assert!((*bytes).as_ref() == self.content(i), "sample {i}");
            }
        }
        assert!(stream.take(batch, || true).unwrap().is_empty());
    }
}

pub fn statistic(engine: &Engine, name: &str) -> u64 {
    engine
        .statistics()
        .into_iter()
        .find(|(known, _)| *known == name)
        .unwrap()
        .1
}

/// Wait for something to come true, at most a minute.
#[track_caller]
pub fn until(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "not within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All files below a directory, sorted.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}
