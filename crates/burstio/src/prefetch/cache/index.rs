//! Which samples are cached, and where.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::schedule::Sample;
use super::super::segment::{self, Fingerprint, HEADER, Record};
use super::super::statistics::Statistics;
use super::CacheOptions;
use super::files::Files;

/// In place of a segment's number.
const ABSENT: u32 = u32::MAX;
/// The same, of a sample that has a file of its own.
const OWN_FILE: u32 = u32::MAX - 1;

/// Where a sample lies, and what it must be.
#[derive(Clone, Copy)]
pub struct Entry {
    pub segment: u32,
    pub length: u32,
    pub offset: u64,
    pub checksum: u64,
}

impl Entry {
    /// Of a record in a segment.
    pub fn of(record: &Record, segment: u32, offset: u64) -> Self {
        let Record {
            length, checksum, ..
        } = *record;
        Self {
            segment,
            length,
            offset,
            checksum,
        }
    }

    /// Of a record that is all of a file.
    pub fn of_own_file(record: &Record) -> Self {
        Self::of(record, OWN_FILE, HEADER as u64)
    }
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

    /// A cached sample, and its segment where it has no file of its own.
    pub fn find(&self, sample: Sample) -> Option<(Entry, Option<&Arc<File>>)> {
        let entry = *self.entries.get(sample as usize)?;
        match entry.segment {
            ABSENT => None,
            OWN_FILE => Some((entry, None)),
            number => Some((entry, Some(self.segments.get(number as usize)?))),
        }
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
        for entry in &mut self.entries {
            entry.segment = ABSENT;
        }
    }

    /// Read what a former run kept of the samples that this node `owns`, if it kept it in the same
    /// way, and remove all else; returns how many bytes it takes.
    pub fn adopt(
        &mut self,
        options: &CacheOptions,
        fingerprint: Fingerprint,
        owns: impl Fn(Sample) -> bool,
        statistics: &Statistics,
    ) -> io::Result<u64> {
        let (unkept, kept) = (false, true);
        Files::new(&options.directory, unkept).remove()?;
        let bytes = if options.keep && !options.segments {
            self.adopt_segments(options, None, &owns)?;
            self.adopt_files(options, fingerprint, &owns)?
        } else {
            Files::new(&options.directory, kept).remove()?;
            self.adopt_segments(options, options.keep.then_some(fingerprint), &owns)?
        };
        let cached = |entry: &&Entry| entry.segment != ABSENT;
        let adopted = self.entries.iter().filter(cached).count();
        Statistics::add(&statistics.cache_samples, adopted);
        Statistics::add(&statistics.cache_adopted, adopted);
        Ok(bytes)
    }

    /// Without a fingerprint none is. A segment can't be cut to pieces: one of which other nodes
    /// own the greater part is removed, any other is used as a whole.
    fn adopt_segments(
        &mut self,
        options: &CacheOptions,
        fingerprint: Option<Fingerprint>,
        owns: &impl Fn(Sample) -> bool,
    ) -> io::Result<u64> {
        let mut bytes = 0;
        for path in segments(&options.directory)? {
            let file = File::open(&path)?;
            let mut found = match fingerprint {
                Some(fingerprint) => segment::records(&file, fingerprint)?,
                None => vec![],
            };
            found.retain(|(_, record)| (record.sample as usize) < self.entries.len());
            let owned = found.iter().filter(|(_, record)| owns(record.sample));
            let foreign = 2 * owned.count() < found.len();
            let number = self.next_segment();
            let expected = options.directory.join(format!("segment-{number:06}"));
            let length = file.metadata()?.len();
            if found.is_empty() || foreign || bytes + length > options.budget_bytes {
                std::fs::remove_file(&path)?;
                continue;
            }
            if path != expected {
                std::fs::rename(&path, &expected)?;
            }
            for (offset, record) in &found {
                self.insert(record.sample, Entry::of(record, number, *offset));
            }
            bytes += length;
            self.add_segment(Arc::new(file));
        }
        Ok(bytes)
    }

    fn adopt_files(
        &mut self,
        options: &CacheOptions,
        fingerprint: Fingerprint,
        owns: &impl Fn(Sample) -> bool,
    ) -> io::Result<u64> {
        let mut bytes = 0;
        Files::new(&options.directory, true).adopt(fingerprint, |record, length| {
            let known = (record.sample as usize) < self.entries.len();
            let wanted = known && owns(record.sample) && bytes + length <= options.budget_bytes;
            if wanted {
                bytes += length;
                self.insert(record.sample, Entry::of_own_file(record));
            }
            wanted
        })?;
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
