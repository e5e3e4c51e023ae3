//! What a reader's thread does with a task: the cache, or the source, and the cache behind it.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use super::bytes::{Bytes, Pool};
use super::cache::Cache;
use super::engine::EngineOptions;
use super::peers::Peers;
use super::schedule::{CACHE_READS, From, Place, Sample, Task, UNKNOWN};
use super::source::{ReadError, Source};
use super::statistics::Statistics;

/// A reader needs little more than a system call's.
const STACK_BYTES: usize = 256 << 10;

/// What all threads of an engine have in common.
pub(super) struct Shared {
    pub pool: Arc<Pool>,
    pub source: Source,
    pub cache: Option<Cache<Bytes>>,
    pub peers: Option<Peers>,
    pub statistics: Statistics,
    pub options: EngineOptions,
    pub began: Instant,
    pub planned: OnceLock<Instant>,
    pub readers: Mutex<Vec<JoinHandle<()>>>,
    pub writer: Mutex<Option<JoinHandle<()>>>,
    pub closed: AtomicBool,
}

pub(super) fn thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new()
        .name(name.into())
        .stack_size(STACK_BYTES)
}

impl Shared {
    pub(super) fn lock_readers(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.readers
            .lock()
            .expect("no thread panics under this lock")
    }

    pub(super) fn write(&self) {
        if let Some(cache) = &self.cache {
            cache.write(&self.statistics, || self.hold_back(true));
        }
    }

    /// Where the writer is behind, what is read ahead would have to be read again: not now. Where
    /// it is so far behind that it takes nothing, as on a disk that hangs, reading ahead goes on.
    fn hold_back(&self, taken: bool) {
        let behind = || {
            self.cache
                .as_ref()
                .is_some_and(|cache| self.is_behind(cache))
        };
        self.pool.board.hold_back(|| taken && behind());
    }

    /// Whether so much waits to be written that no more should be read ahead.
    pub(super) fn is_behind(&self, cache: &Cache<Bytes>) -> bool {
        cache.waiting_bytes() > self.most_waiting() / 2
    }

    /// One more reader, if the depth allows more than there are.
    pub(super) fn grow(self: &Arc<Self>) {
        let wanted = self
            .pool
            .board
            .with(|schedule| schedule.depth.limit() + CACHE_READS + schedule.most_from_peers);
        let mut readers = self.lock_readers();
        if readers.len() < wanted && !self.closed.load(Relaxed) {
            let reader = self.clone();
            // Where the system gives no more threads, as many as there are do it.
            readers.extend(thread("burstio-reader").spawn(move || reader.work()));
        }
    }

    fn work(self: Arc<Self>) {
        while let Some(task) = self.pool.board.next_task(|sample| self.whence(sample)) {
            self.grow();
            self.perform(task);
        }
    }

    fn whence(&self, sample: Sample) -> From {
        let cached = |cache: &Cache<_>| cache.size(sample).is_some();
        let asks = |peers: &Peers| peers.answers_for(sample);
        match (&self.cache, &self.peers) {
            (Some(cache), _) if cached(cache) => From::Cache,
            (_, Some(peers)) if asks(peers) => From::Peer,
            _ => From::Source,
        }
    }

    fn perform(self: &Arc<Self>, task: Task) {
        let mut begin = Instant::now();
        let Some(read) = self.read(task, &mut begin).transpose() else {
            return;
        };
        let result = read.map_err(Arc::new);
        if result.is_err() {
            Statistics::count(&self.statistics.source_errors);
        } else {
            self.note_first(&self.statistics.first_sample_us);
        }
        self.pool
            .board
            .complete(task.sample, &result, begin.elapsed(), self.began.elapsed());
    }

    /// None where nobody wants it any more. `begin` is when reading where it was read in the end
    /// began.
    fn read(
        self: &Arc<Self>,
        task: Task,
        begin: &mut Instant,
    ) -> Result<Option<Arc<Bytes>>, ReadError> {
        let Task {
            sample,
            from,
            place,
        } = task;
        let mut memory = match place {
            Some((length, place)) => Some(self.memory(sample, place, length)?),
            None => None,
        };
        let near = match from {
            From::Source => None,
            From::Cache => Some(self.read_cached(sample, memory.take())?),
            From::Peer => Some(self.ask_peer(sample, memory.take())?),
        };
        if let Some(near) = near {
            memory = match near {
                Near::Whole(bytes) => return Ok(Some(Arc::new(bytes))),
                Near::Unwanted => return Ok(None),
                Near::Spoilt(memory) => memory,
            };
            self.pool.board.fall_back(sample);
            *begin = Instant::now();
        }
        self.read_source(sample, memory)
    }

    fn read_cached(
        self: &Arc<Self>,
        sample: Sample,
        memory: Option<Bytes>,
    ) -> Result<Near, ReadError> {
        let Some(cache) = &self.cache else {
            return Ok(Near::Spoilt(memory));
        };
        let Some(size) = cache.size(sample) else {
            return Ok(Near::Spoilt(memory));
        };
        let Some(mut bytes) = self.fit(sample, memory, size)? else {
            return Ok(Near::Unwanted);
        };
        if !cache.read(sample, bytes.as_mut()) {
            Statistics::count(&self.statistics.checksum_failures);
            return Ok(Near::Spoilt(Some(bytes)));
        }
        Statistics::add(&self.statistics.cache_bytes_read, size);
        Statistics::count(&self.statistics.from_cache);
        Ok(Near::Whole(bytes))
    }

    /// From the node that owns it.
    fn ask_peer(
        self: &Arc<Self>,
        sample: Sample,
        memory: Option<Bytes>,
    ) -> Result<Near, ReadError> {
        let failed = |memory| {
            if !self.closed.load(Relaxed) {
                Statistics::count(&self.statistics.peer_errors);
            }
            Ok(Near::Spoilt(memory))
        };
        let Some(answer) = self.peers.as_ref().and_then(|peers| peers.ask(sample)) else {
            return failed(memory);
        };
        let (size, expected) = (answer.size(), self.source.sizes()[sample as usize]);
        if expected != UNKNOWN && expected != size as u64 {
            answer.reject();
            return failed(memory);
        }
        let Some(mut bytes) = self.fit(sample, memory, size)? else {
            return Ok(Near::Unwanted);
        };
        if !answer.fill(bytes.as_mut()) {
            return failed(Some(bytes));
        }
        Statistics::add(&self.statistics.peer_bytes, size);
        Statistics::count(&self.statistics.from_peers);
        Ok(Near::Whole(bytes))
    }

    /// Whether this node caches a sample.
    pub(super) fn owns(&self, sample: Sample) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.owns(sample))
    }

    /// None where nobody wants it any more.
    fn read_source(
        self: &Arc<Self>,
        sample: Sample,
        memory: Option<Bytes>,
    ) -> Result<Option<Arc<Bytes>>, ReadError> {
        Statistics::count(&self.statistics.source_opens);
        let (file, size) = self.source.open(sample)?;
        let Some(mut bytes) = self.fit(sample, memory, size)? else {
            return Ok(None);
        };
        self.source.read(sample, &file, bytes.as_mut())?;
        Statistics::add(&self.statistics.source_bytes, size);
        Statistics::count(&self.statistics.from_source);
        let bytes = Arc::new(bytes);
        let Some(cache) = self.cache.as_ref().filter(|_| self.owns(sample)) else {
            return Ok(Some(bytes));
        };
        let most_waiting = self.most_waiting();
        let taken = cache.offer(sample, &bytes, most_waiting, &self.statistics);
        self.hold_back(taken);
        if taken && !self.options.tee {
            cache.wait_for(sample);
            let mut again = vec![0; size];
            cache.read(sample, &mut again);
            Statistics::add(&self.statistics.cache_bytes_read, size);
        }
        Ok(Some(bytes))
    }

    /// Memory for `size` bytes: what there is, if it fits. None where nobody wants it any more.
    fn fit(
        self: &Arc<Self>,
        sample: Sample,
        memory: Option<Bytes>,
        size: usize,
    ) -> Result<Option<Bytes>, ReadError> {
        match memory {
            Some(bytes) if bytes.as_ref().len() == size => return Ok(Some(bytes)),
            other => drop(other),
        }
        let place = self.pool.board.place(sample, size);
        place
            .map(|place| self.memory(sample, place, size))
            .transpose()
    }

    fn memory(&self, sample: Sample, place: Place, length: usize) -> Result<Bytes, ReadError> {
        if place == Place::Own {
            Statistics::count(&self.statistics.beyond_budget);
        }
        let failed = |error: io::Error| ReadError::of(&self.source.path(sample), &error);
        Bytes::new(&self.pool, place, length).map_err(failed)
    }

    /// Bytes that may wait for the writer: the rest of the memory is for what is wanted soon.
    pub(super) fn most_waiting(&self) -> usize {
        self.options.memory_bytes / 2
    }

    pub(super) fn note_first(&self, counter: &AtomicU64) {
        if counter.load(Relaxed) == 0
            && let Some(planned) = self.planned.get()
        {
            let us = planned.elapsed().as_micros().max(1) as u64;
            let _ = counter.compare_exchange(0, us, Relaxed, Relaxed);
        }
    }
}

/// What became of reading what is nearer than the source.
enum Near {
    Whole(Bytes),
    Spoilt(Option<Bytes>),
    Unwanted,
}
