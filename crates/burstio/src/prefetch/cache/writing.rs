//! The cache's writer: samples to the end of a segment, many with one system call, or each to a
//! file of its own.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::statvfs;

use super::super::schedule::Sample;
use super::super::segment::{HEADER, Record};
use super::super::statistics::Statistics;
use super::Cache;
use super::index::Entry;

/// A segment is closed when it has this many bytes.
const SEGMENT_BYTES: u64 = 1 << 30;
/// Samples written with one system call, at most; the kernel takes 1024 pieces, two per sample.
const BATCH: usize = 256;
/// Bytes written with one system call, about: their memory is free again when it returns.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes between two looks at how full the file system is.
const LOOK_BYTES: u64 = 64 << 20;

/// How far the writer has come.
#[derive(Default)]
struct Progress {
    tail: Tail,
    unlooked: Option<u64>, // bytes since the last look at the file system
}

/// The segment at whose end is written.
#[derive(Default)]
struct Tail {
    number: u32,
    file: Option<Arc<File>>,
    length: u64,
}

impl<T: AsRef<[u8]>> Cache<T> {
    /// The writer's thread: writes what is offered until `finish`, and all of it.
    /// `written` is called after every batch.
    pub fn write(&self, statistics: &Statistics, written: impl Fn()) {
        let mut progress = Progress::default();
        while let Some(batch) = self.next_batch() {
            let bytes: usize = batch
                .iter()
                .map(|(_, _, here)| (**here).as_ref().len())
                .sum();
            if let Err(_full) = self.write_batch(&batch, &mut progress, statistics) {
                let mut queue = self.lock();
                (queue.full, queue.refusing) = (true, true);
                statistics.cache_full.store(1, Relaxed);
            }
            drop(batch);
            let mut queue = self.lock();
            queue.waiting_bytes -= bytes;
            queue.writing = false;
            self.written.notify_all();
            drop(queue);
            written();
        }
    }

    fn next_batch(&self) -> Option<Vec<(Sample, u64, Arc<T>)>> {
        let mut queue = self.lock();
        while queue.waiting.is_empty() {
            if queue.closing {
                return None;
            }
            queue = self
                .queued
                .wait(queue)
                .expect("no thread panics under this lock");
        }
        queue.writing = true;
        let (mut count, mut bytes) = (0, 0);
        for (_, _, here) in queue.waiting.iter().take(BATCH) {
            (count, bytes) = (count + 1, bytes + (**here).as_ref().len());
            if bytes >= BATCH_BYTES {
                break;
            }
        }
        Some(queue.waiting.drain(..count).collect())
    }

    fn write_batch(
        &self,
        batch: &[(Sample, u64, Arc<T>)],
        progress: &mut Progress,
        statistics: &Statistics,
    ) -> io::Result<()> {
        if self.lock().full {
            return Ok(()); // what was promised a place before the disk was full
        }
        self.look(&mut progress.unlooked)?;
        let bytes = if self.options.segments {
            let bytes = self.append_batch(batch, &mut progress.tail)?;
            count(batch.len(), bytes, statistics);
            bytes
        } else {
            self.write_files(batch, statistics)?
        };
        progress.unlooked = progress.unlooked.map(|before| before + bytes);
        Ok(())
    }

    /// Fails when the file system is too full.
    fn look(&self, unlooked: &mut Option<u64>) -> io::Result<()> {
        if unlooked.is_none_or(|bytes| bytes >= LOOK_BYTES) {
            *unlooked = Some(0);
            let system = statvfs(&self.options.directory)?;
            if (system.f_bavail as f64) < self.options.keep_free * system.f_blocks as f64 {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        Ok(())
    }

    /// To the end of a segment, all or none; returns the bytes written.
    fn append_batch(&self, batch: &[(Sample, u64, Arc<T>)], tail: &mut Tail) -> io::Result<u64> {
        let (segment, file) = self.segment(tail)?;
        let records: Vec<Record> = batch.iter().map(|it| record(it)).collect();
        let headers: Vec<_> = records
            .iter()
            .map(|it| it.encode(self.fingerprint))
            .collect();
        let mut pieces = Vec::with_capacity(2 * batch.len());
        for (header, (_, _, here)) in headers.iter().zip(batch) {
            pieces.extend([IoSlice::new(header), IoSlice::new((**here).as_ref())]);
        }
        let begin = tail.length;
        tail.length = append(&file, &pieces, begin).inspect_err(|_| {
            let _ = file.set_len(begin); // nothing torn stays, and its room is given back
        })?;
        let mut offset = begin;
        self.change(|index| {
            for record in records {
                offset += HEADER as u64;
                index.insert(record.sample, Entry::of(&record, segment, offset));
                offset += u64::from(record.length);
            }
        });
        Ok(tail.length - begin)
    }

    /// The segment that is being written, or a new one.
    fn segment(&self, tail: &mut Tail) -> io::Result<(u32, Arc<File>)> {
        if let Some(file) = &tail.file
            && tail.length < SEGMENT_BYTES
        {
            return Ok((tail.number, file.clone()));
        }
        let number = self.change(|index| index.next_segment());
        let path = self.options.directory.join(format!("segment-{number:06}"));
        let file = Arc::new(private(&path, false)?);
        if !self.options.keep {
            std::fs::remove_file(&path)?;
        }
        self.change(|index| index.add_segment(file.clone()));
        *tail = Tail {
            number,
            file: Some(file.clone()),
            length: 0,
        };
        Ok((number, file))
    }

    /// Each to its file, up to the first that can't be written; returns the bytes written.
    fn write_files(
        &self,
        batch: &[(Sample, u64, Arc<T>)],
        statistics: &Statistics,
    ) -> io::Result<u64> {
        let mut written = 0;
        for one @ (sample, _, here) in batch {
            let record = record(one);
            let header = record.encode(self.fingerprint);
            self.files.write(*sample, &header, (**here).as_ref())?;
            self.change(|index| index.insert(*sample, Entry::of_own_file(&record)));
            let bytes = HEADER as u64 + u64::from(record.length);
            count(1, bytes, statistics);
            written += bytes;
        }
        Ok(written)
    }
}

fn count(samples: usize, bytes: u64, statistics: &Statistics) {
    Statistics::add(&statistics.cache_bytes_written, bytes as usize);
    Statistics::add(&statistics.cache_samples, samples);
}

fn record<T: AsRef<[u8]>>((sample, checksum, here): &(Sample, u64, Arc<T>)) -> Record {
    let length = (**here).as_ref().len() as u32;
    Record {
        sample: *sample,
        length,
        checksum: *checksum,
    }
}

/// With its parents.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path)
}

pub fn private(path: &Path, may_exist: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    options.create(may_exist).create_new(!may_exist).open(path)
}

/// Write all `pieces` at `offset`; returns where they end.
pub fn append(file: &File, pieces: &[IoSlice<'_>], mut offset: u64) -> io::Result<u64> {
    let (mut first, mut skip) = (0, 0);
    while first < pieces.len() {
        let mut rest: Vec<IoSlice<'_>> = pieces[first..].to_vec();
        rest[0].advance(skip);
        let mut written = match rustix::io::pwritev(file, &rest, offset) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            other => other?,
        };
        offset += written as u64;
        written += skip;
        while first < pieces.len() && written >= pieces[first].len() {
            written -= pieces[first].len();
            first += 1;
        }
        skip = written;
    }
    Ok(offset)
}

#[cfg(test)]
mod tests {
    use super::super::CacheOptions;
    use super::*;

    #[test]
    fn what_was_written_before_a_file_that_can_not_be_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let options = CacheOptions {
            directory: directory.path().join("cache"),
            budget_bytes: u64::MAX,
            keep_free: 0.0,
            segments: false,
            keep: false,
        };
        let statistics = Statistics::default();
        let cache = Cache::open(options, 1, 2, |_| true, &statistics).unwrap();
        std::fs::create_dir_all(directory.path().join("cache/samples/0/1")).unwrap();
        for sample in 0..2 {
            assert!(cache.offer(sample, &Arc::new([7; 10]), usize::MAX, &statistics));
        }
        cache.finish();
        cache.write(&statistics, || {});
        assert_eq!(statistics.cache_samples.load(Relaxed), 1);
        let written = statistics.cache_bytes_written.load(Relaxed);
        assert_eq!(written, HEADER as u64 + 10);
    }
}
