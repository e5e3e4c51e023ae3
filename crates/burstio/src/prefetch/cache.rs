//! The cache on local storage: pinned first come, first kept, in a few large segment files.
//!
//! Every sample is read once per epoch, so what is kept matters more than what is evicted: keeping
//! the first that come is as good as Belady's optimum (`tests/prefetch_pinning.rs`). Samples are
//! written behind the consumer's back by one thread; they count as cached when they are written.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, RwLock};

use rustix::fs::{FlockOperation, flock, fstatvfs};

use super::schedule::Sample;
use super::segment::{self, Fingerprint, HEADER, Record};
use super::statistics::Statistics;

/// A segment is closed when it has this many bytes.
const SEGMENT_BYTES: u64 = 1 << 30;
/// Samples written with one system call, at most; the kernel takes 1024 pieces, two per sample.
const BATCH: usize = 256;
/// Bytes between two looks at how full the file system is.
const LOOK_BYTES: u64 = 64 << 20;
const ABSENT: u32 = u32::MAX;

/// What the cache may take.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// A directory of its own; it is made.
    pub directory: PathBuf,
    /// The most that segments take [byte].
    pub budget_bytes: u64,
    /// The share of the file system that stays free, of 1.
    pub keep_free: f64,
    /// Leave the segments for a later run, which must have the same data set's fingerprint.
    /// Otherwise they have no name, and end with this process, whatever ends it.
    pub keep: bool,
}

/// Written samples, and those on their way.
pub struct Cache<T> {
    options: CacheOptions,
    fingerprint: Fingerprint,
    index: RwLock<Index>,
    queue: Mutex<Queue<T>>,
    queued: Condvar,
    written: Condvar,
    lock: File,
}

#[derive(Clone, Copy)]
struct Entry {
    segment: u32,
    length: u32,
    offset: u64,
    checksum: u64,
}

struct Index {
    entries: Vec<Entry>,
    segments: Vec<Arc<File>>,
}

struct Queue<T> {
    waiting: VecDeque<(Sample, u64, Arc<T>)>,
    waiting_bytes: usize,
    writing: bool,
    pinned_bytes: u64, // written or promised
    refusing: bool,    // the budget is used up, or the disk is full
    full: bool,        // the disk is
    closing: bool,
}

impl<T: AsRef<[u8]>> Cache<T> {
    /// Open the directory, for this process alone, and adopt what a former run kept there.
    ///
    /// Fails where another process has it, or it can't be made. What lies there and is of no use
    /// is removed; files that are not a cache's are left.
    pub fn open(
        options: CacheOptions,
        fingerprint: Fingerprint,
        count: usize,
        statistics: &Statistics,
    ) -> io::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&options.directory)?;
        let lock = private(&options.directory.join("lock"), true)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let message = format!(
                "{}: another process caches here",
                options.directory.display()
            );
            io::Error::new(io::ErrorKind::WouldBlock, message)
        })?;
        let absent = Entry {
            segment: ABSENT,
            length: 0,
            offset: 0,
            checksum: 0,
        };
        let mut index = Index {
            entries: vec![absent; count],
            segments: Vec::new(),
        };
        let pinned_bytes = index.adopt(&options, fingerprint, statistics)?;
        let queue = Queue {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            writing: false,
            pinned_bytes,
            refusing: false,
            full: false,
            closing: false,
        };
        Ok(Self {
            options,
            fingerprint,
            index: RwLock::new(index),
            queue: Mutex::new(queue),
            queued: Condvar::new(),
            written: Condvar::new(),
            lock,
        })
    }

    /// The size of a sample that is in the cache.
    pub fn size(&self, sample: Sample) -> Option<usize> {
        let index = self.index.read().expect("no thread panics under this lock");
        let entry = index.entries[sample as usize];
        (entry.segment != ABSENT).then_some(entry.length as usize)
    }

    /// Fill `bytes` with a cached sample; false where it is not what was written, and is forgotten.
    pub fn read(&self, sample: Sample, bytes: &mut [u8]) -> bool {
        let (entry, file) = {
            let index = self.index.read().expect("no thread panics under this lock");
            let entry = index.entries[sample as usize];
            let Some(file) = index.segments.get(entry.segment as usize) else {
                return false;
            };
            (entry, file.clone())
        };
        let whole = entry.length as usize == bytes.len()
            && file.read_exact_at(bytes, entry.offset).is_ok()
            && segment::checksum(self.fingerprint, sample, bytes) == entry.checksum;
        if !whole {
            let mut index = self
                .index
                .write()
                .expect("no thread panics under this lock");
            index.entries[sample as usize].segment = ABSENT;
        }
        whole
    }

    /// Take a sample to be written, if there is room for it and the writer is not more than
    /// `most_waiting` bytes behind. True where it has been taken.
    pub fn offer(
        &self,
        sample: Sample,
        here: &Arc<T>,
        most_waiting: usize,
        statistics: &Statistics,
    ) -> bool {
        let bytes = (**here).as_ref();
        let size = (HEADER + bytes.len()) as u64;
        if u32::try_from(bytes.len()).is_err() || self.size(sample).is_some() {
            return false;
        }
        {
            let mut queue = self.lock();
            queue.refusing |= queue.pinned_bytes + size > self.options.budget_bytes;
            if queue.refusing {
                statistics.cache_full.store(1, Relaxed);
                return false;
            }
        }
        let checksum = segment::checksum(self.fingerprint, sample, bytes);
        let mut queue = self.lock();
        if queue.closing {
            return false;
        }
        if queue.waiting_bytes > 0 && queue.waiting_bytes + bytes.len() > most_waiting {
            Statistics::count(&statistics.writes_skipped);
            return false;
        }
        queue.pinned_bytes += size;
        queue.waiting_bytes += bytes.len();
        queue.waiting.push_back((sample, checksum, here.clone()));
        self.queued.notify_one();
        true
    }

    /// Whether nothing more is taken.
    pub fn is_full(&self) -> bool {
        self.lock().refusing
    }

    /// Bytes that wait to be written.
    pub fn waiting_bytes(&self) -> usize {
        self.lock().waiting_bytes
    }

    /// The writer's thread: writes what is offered until `finish`, and all of it.
    pub fn write(&self, statistics: &Statistics) {
        let mut segment = Tail::default();
        while let Some(batch) = self.next_batch() {
            let bytes: usize = batch
                .iter()
                .map(|(_, _, here)| (**here).as_ref().len())
                .sum();
            if let Err(_full) = self.write_batch(&batch, &mut segment, statistics) {
                let mut queue = self.lock();
                (queue.full, queue.refusing) = (true, true);
                statistics.cache_full.store(1, Relaxed);
            }
            drop(batch);
            let mut queue = self.lock();
            queue.waiting_bytes -= bytes;
            queue.writing = false;
            self.written.notify_all();
        }
    }

    /// Wait until all that was offered is written.
    pub fn drain(&self) {
        let mut queue = self.lock();
        while queue.writing || !queue.waiting.is_empty() {
            queue = self
                .written
                .wait(queue)
                .expect("no thread panics under this lock");
        }
    }

    /// Wait until a sample that was taken is written, or can't be.
    pub fn wait_for(&self, sample: Sample) {
        let mut queue = self.lock();
        while self.size(sample).is_none() && !queue.full && !queue.closing {
            queue = self
                .written
                .wait(queue)
                .expect("no thread panics under this lock");
        }
    }

    /// Nothing is offered any more: `write` returns when it has written what there is.
    pub fn finish(&self) {
        self.lock().closing = true;
        self.queued.notify_all();
        self.written.notify_all();
    }

    /// Another process may have the directory.
    pub fn release(&self) {
        let _ = flock(&self.lock, FlockOperation::Unlock);
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
        let count = queue.waiting.len().min(BATCH);
        Some(queue.waiting.drain(..count).collect())
    }

    fn write_batch(
        &self,
        batch: &[(Sample, u64, Arc<T>)],
        tail: &mut Tail,
        statistics: &Statistics,
    ) -> io::Result<()> {
        if self.lock().full {
            return Ok(()); // what was promised a place before the disk was full
        }
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
        let mut index = self
            .index
            .write()
            .expect("no thread panics under this lock");
        for record in &records {
            offset += HEADER as u64;
            index.entries[record.sample as usize] = Entry {
                segment,
                length: record.length,
                offset,
                checksum: record.checksum,
            };
            offset += u64::from(record.length);
        }
        drop(index);
        Statistics::add(
            &statistics.cache_bytes_written,
            (tail.length - begin) as usize,
        );
        Statistics::add(&statistics.cache_samples, batch.len());
        Ok(())
    }

    /// The segment that is being written, or a new one; fails when the file system is too full.
    fn segment(&self, tail: &mut Tail) -> io::Result<(u32, Arc<File>)> {
        if tail.file.is_none() || tail.length >= SEGMENT_BYTES {
            let mut index = self
                .index
                .write()
                .expect("no thread panics under this lock");
            let number = index.segments.len();
            let path = self.options.directory.join(format!("segment-{number:06}"));
            let file = Arc::new(private(&path, false)?);
            if !self.options.keep {
                std::fs::remove_file(&path)?;
            }
            index.segments.push(file.clone());
            *tail = Tail {
                number: number as u32,
                file: Some(file),
                length: 0,
                looked: None,
            };
        }
        let file = tail.file.clone().ok_or(io::ErrorKind::NotFound)?;
        if tail.looked.is_none_or(|at| tail.length >= at + LOOK_BYTES) {
            tail.looked = Some(tail.length);
            let system = fstatvfs(&file)?;
            if (system.f_bavail as f64) < self.options.keep_free * system.f_blocks as f64 {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        Ok((tail.number, file))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue<T>> {
        self.queue.lock().expect("no thread panics under this lock")
    }
}

/// The segment at whose end is written.
#[derive(Default)]
struct Tail {
    number: u32,
    file: Option<Arc<File>>,
    length: u64,
    looked: Option<u64>,
}

impl Index {
    /// Read the segments that a former run kept; returns how many bytes they take.
    fn adopt(
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

fn record<T: AsRef<[u8]>>((sample, checksum, here): &(Sample, u64, Arc<T>)) -> Record {
    let length = (**here).as_ref().len() as u32;
    Record {
        sample: *sample,
        length,
        checksum: *checksum,
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

fn private(path: &Path, may_exist: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    options.create(may_exist).create_new(!may_exist).open(path)
}

/// Write all `pieces` at `offset`; returns where they end.
fn append(file: &File, pieces: &[IoSlice<'_>], mut offset: u64) -> io::Result<u64> {
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
