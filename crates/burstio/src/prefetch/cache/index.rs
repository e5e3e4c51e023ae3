//! Which samples are cached, and where.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::schedule::Sample;
use super::super::segment::{self, Fingerprint, Record};
use super::super::statistics::Statistics;
use super::CacheOptions;

/// In place of a segment's number.
const ABSENT: u32 = u32::MAX;

/// Where a sample lies, and what it must be.
#[derive(Clone, Copy)]
pub struct Entry {
    pub segment: u32,
    pub length: u32,
    pub offset: u64,
    pub checksum: u64,
}

/// All samples and segments.
pub struct Index {
    entries: Vec<Entry>,
    segments: Vec<Arc<File>>,
}

impl Index {
    /// Of a data set of `count` samples, none cached.
    pub fn new(count: usize) -> Self {
        let absent = Entry {
            segment: ABSENT,
            length: 0,
            offset: 0,
            checksum: 0,
        };
        Self {
            entries: vec![absent; count],
            segments: Vec::new(),
        }
    }

    /// A cached sample.
    pub fn find(&self, sample: Sample) -> Option<(Entry, &Arc<File>)> {
        let entry = *self.entries.get(sample as usize)?;
        self.segments
            .get(entry.segment as usize)
            .map(|file| (entry, file))
    }

    /// A sample is cached now.
    pub fn insert(&mut self, sample: Sample, entry: Entry) {
        self.entries[sample as usize] = entry;
    }

    /// A sample is no good.
    pub fn forget(&mut self, sample: Sample) {
        self.entries[sample as usize].segment = ABSENT;
    }

    /// The number of the next segment.
    pub fn next_segment(&self) -> u32 {
        self.segments.len() as u32
    }

    /// A segment, of the number that was next.
    pub fn add_segment(&mut self, file: Arc<File>) {
        self.segments.push(file);
    }

    /// Close all segments: nothing is cached any more.
    pub fn close(&mut self) {
        self.segments.clear();
    }

    /// Read the segments that a former run kept; returns how many bytes they take.
    pub fn adopt(
        &mut self,
        options: &CacheOptions,
        fingerprint: Fingerprint,
        statistics: &Statistics,
    ) -> io::Result<u64> {
        let mut bytes = 0;
        for path in segments(&options.directory)? {
            let file = File::open(&path)?;
            let found = if options.keep {
                segment::records(&file, fingerprint)?
            } else {
                vec![]
            };
            let known = |record: &Record| (record.sample as usize) < self.entries.len();
            let found: Vec<_> = found
                .into_iter()
                .filter(|(_, record)| known(record))
                .collect();
            let expected = options
                .directory
                .join(format!("segment-{:06}", self.segments.len()));
            if found.is_empty() || bytes + file.metadata()?.len() > options.budget_bytes {
                std::fs::remove_file(&path)?;
                continue;
            }
            if path != expected {
                std::fs::rename(&path, &expected)?;
            }
            for (
                offset,
                Record {
                    sample,
                    length,
                    checksum,
                },
            ) in &found
            {
                let segment = self.segments.len() as u32;
                let entry = Entry {
                    segment,
                    length: *length,
                    offset: *offset,
                    checksum: *checksum,
                };
                self.entries[*sample as usize] = entry;
            }
            Statistics::add(&statistics.cache_samples, found.len());
            Statistics::add(&statistics.cache_adopted, found.len());
            bytes += file.metadata()?.len();
            self.segments.push(Arc::new(file));
        }
        Ok(bytes)
    }
}

/// Paths of the segments in `directory`, by number.
fn segments(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(b"segment-")
        {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
