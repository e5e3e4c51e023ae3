//! The cache on local storage: pinned first come, first kept, in a few large segment files
//! (or for comparison in a file each).
//!
//! Every sample is read once per epoch, so what is kept matters more than what is evicted: keeping
//! the first that come is as good as Belady's optimum (`tests/prefetch_pinning.rs`). Samples are
//! written behind the consumer's back by one thread; they count as cached when they are written.

mod files;
mod index;
mod writing;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, RwLock};

use rustix::fs::{FlockOperation, flock};

use super::schedule::Sample;
use super::segment::{self, Fingerprint, HEADER};
use super::statistics::Statistics;
use files::Files;
use index::Index;
use writing::{make_private_directory, private};

/// What the cache may take.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// A directory of its own; it is made.
    pub directory: PathBuf,
    /// The most that segments take [byte].
    pub budget_bytes: u64,
    /// The share of the file system that stays free, of 1.
    pub keep_free: f64,
    /// Samples lie in a few large files; otherwise each has a file of its own, which is opened at
    /// every read.
    pub segments: bool,
    /// Leave the samples for a later run, which must have the same data set's fingerprint.
    /// Otherwise segments have no name, and end with this process, whatever ends it; files of
    /// single samples end with `release`, or are removed by the next to open the cache.
    pub keep: bool,
}

/// Written samples, and those on their way.
pub struct Cache<T> {
    options: CacheOptions,
    fingerprint: Fingerprint,
    files: Files,
    index: RwLock<Index>,
    queue: Mutex<Queue<T>>,
    queued: Condvar,
    written: Condvar,
    directory: Mutex<Option<File>>, // locked
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
    /// Open the directory, for this process alone, and adopt what a former run kept there of the
    /// samples that this node `owns`; others would take their room for good.
    ///
    /// Fails where another process has it, or it can't be made. What lies there and is of no use
    /// is removed; files that are not a cache's are left.
    pub fn open(
        options: CacheOptions,
        fingerprint: Fingerprint,
        count: usize,
        owns: impl Fn(Sample) -> bool,
        statistics: &Statistics,
    ) -> io::Result<Self> {
        make_private_directory(&options.directory)?;
        let lock = private(&options.directory.join("lock"), true)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let message = format!(
                "{}: another process caches here",
                options.directory.display()
            );
            io::Error::new(io::ErrorKind::WouldBlock, message)
        })?;
        let mut index = Index::new(count);
        let pinned_bytes = index.adopt(&options, fingerprint, owns, statistics)?;
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
            files: Files::new(&options.directory, options.keep),
            options,
            fingerprint,
            index: RwLock::new(index),
            queue: Mutex::new(queue),
            queued: Condvar::new(),
            written: Condvar::new(),
            directory: Mutex::new(Some(lock)),
        })
    }

    /// The size of a sample that is in the cache.
    pub fn size(&self, sample: Sample) -> Option<usize> {
        let index = self.index.read().expect("no thread panics under this lock");
        index.find(sample).map(|(entry, _)| entry.length as usize)
    }

    /// Fill `bytes` with a cached sample; false where it is not what was written, and is forgotten.
    pub fn read(&self, sample: Sample, bytes: &mut [u8]) -> bool {
        let found = {
            let index = self.index.read().expect("no thread panics under this lock");
            index
                .find(sample)
                .map(|(entry, segment)| (entry, segment.cloned()))
        };
        let Some((entry, segment)) = found else {
            return false;
        };
        let read = |bytes| match segment {
            Some(segment) => segment.read_exact_at(bytes, entry.offset),
            None => self.files.open(sample)?.read_exact_at(bytes, entry.offset),
        };
        let whole = entry.length as usize == bytes.len()
            && read(&mut *bytes).is_ok()
            && segment::checksum(self.fingerprint, sample, bytes) == entry.checksum;
        if !whole {
            self.change(|index| index.forget(sample));
        }
        whole
    }

    fn change<R>(&self, change: impl FnOnce(&mut Index) -> R) -> R {
        change(
            &mut self
                .index
                .write()
                .expect("no thread panics under this lock"),
        )
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
        // Others have been taken while this one was hashed.
        if queue.closing || queue.pinned_bytes + size > self.options.budget_bytes {
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

    /// Close all files: nothing is cached any more, and another process may have the directory.
    pub fn release(&self) {
        self.change(Index::close);
        if !self.options.keep {
            let _ = self.files.remove(); // what can't be is removed by the next to open the cache
        }
        self.directory
            .lock()
            .expect("no thread panics under this lock")
            .take();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue<T>> {
        self.queue.lock().expect("no thread panics under this lock")
    }
}
