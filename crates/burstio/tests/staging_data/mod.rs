//! A data set to be staged, and how to see that it is whole.
#![allow(dead_code)] // every test uses a part of it

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use burstio::checksum::Hasher;
use burstio::copy::{Children, Copy, CopyError, Entry, Fault, MOST};
use proptest::prelude::*;
use tempfile::TempDir;

/// The longest that a test waits.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Data {
    pub directory: TempDir,
    pub source: PathBuf,
    pub target: PathBuf,
    pub contents: BTreeMap<String, Vec<u8>>,
}

impl Data {
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) = (
            directory.path().join("source"),
            directory.path().join("target"),
        );
        let contents: BTreeMap<_, _> = files.into_iter().collect();
        for (path, content) in &contents {
            let path = source.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir_all(&source).unwrap();
        Data {
            directory,
            source,
            target,
            contents,
        }
    }

    pub fn sized(sizes: &[usize]) -> Self {
        let file = |(number, &size): (usize, &usize)| {
            let content = (0..size)
                .map(|at| (at.wrapping_mul(31) + number) as u8)
                .collect();
            (format!("d{}/f{number}", number % 3), content)
        };
        Data::new(sizes.iter().enumerate().map(file))
    }

    pub fn entries(&self) -> Vec<Entry> {
        let entry = |(path, content): (&String, &Vec<u8>)| {
            let mut hasher = Hasher::default();
            hasher.update(content);
            Entry::new(path, content.len() as u64, Some(hasher.finish()))
        };
        self.contents.iter().map(entry).collect()
    }

    pub fn begin(&self, entries: Vec<Entry>) -> Result<Copy, CopyError> {
        let (source, target) = (&self.source, &self.target);
        Copy::start(source, target, entries, MOST, Children::default())
    }

    pub fn start(&self) -> Copy {
        self.begin(self.entries()).unwrap()
    }

    pub fn refuses(&self, path: &str, size: u64) -> Fault {
        let entries = vec![Entry::new(path, size, None)];
        self.begin(entries).err().unwrap().fault
    }

    /// (copied, present)
    pub fn stage(&self) -> Result<(u64, u64), CopyError> {
        let copy = self.begin(self.entries())?;
        assert!(copy.wait(LONG)?, "still running");
        let done = copy.progress();
        assert_eq!(
            done.bytes,
            self.contents.values().map(|c| c.len() as u64).sum::<u64>()
        );
        Ok((done.files - done.present, done.present))
    }

    pub fn fails_with(&self, path: &str, fault: Fault) {
        let error = self.stage().unwrap_err();
        assert_eq!(
            (error.path.as_str(), &error.fault),
            (path, &fault),
            "{error}"
        );
        assert!(
            !self.target.join(path).exists(),
            "a file that is not whole has its name"
        );
        assert_eq!(partials(&self.target), 0);
    }

    pub fn assert_staged(&self) {
        for (path, content) in &self.contents {
            assert!(
                fs::read(self.target.join(path)).unwrap() == *content,
                "{path}"
            );
        }
        assert_eq!(files(&self.target).len(), self.contents.len());
    }

    /// Nothing that has its name may be wrong, however the staging ended.
    pub fn assert_nothing_torn(&self) {
        for path in files(&self.target) {
            let name = path.strip_prefix(&self.target).unwrap().to_str().unwrap();
            if let Some(content) = self.contents.get(name) {
                assert!(fs::read(&path).unwrap() == *content, "{name}");
            } else {
                assert!(name.ends_with(".burstlab-partial"), "{name}");
            }
        }
    }
}

pub fn files(below: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(below) else {
        return Vec::new();
    };
    let found = entries.map(|entry| entry.unwrap().path());
    found
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

pub fn partials(below: &Path) -> usize {
    let partial = |path: &&PathBuf| path.to_string_lossy().ends_with(".burstlab-partial");
    files(below).iter().filter(partial).count()
}

/// Around what is read whole, around a block, and beyond what is fetched ahead.
pub fn size() -> impl Strategy<Value = usize> {
    let edge = prop::sample::select(vec![0, 1, 4096, 1 << 20, (1 << 20) + 1, 2 << 20, 5 << 20]);
    prop_oneof![9 => 0..100_000usize, 2 => edge, 1 => (1usize << 20)..(3 << 20)]
}
