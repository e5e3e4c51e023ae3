//! The engine: threads that read what the schedule says, from the source or the cache.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::board::{Board, Unfulfilled};
use super::cache::{Cache, CacheOptions};
use super::depth::Depth;
use super::memory::Memory;
use super::region::Region;
use super::schedule::{CACHE_READS, From, Place, Sample, Schedule, StreamId, Task};
use super::source::{ReadError, Source};
use super::statistics::Statistics;

/// A reader needs little more than a system call's.
const STACK_BYTES: usize = 256 << 10;
/// How long closing waits for reads that the source does not answer.
const GRACE: Duration = Duration::from_secs(2);

/// What an engine may use; every property can be switched on its own.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Samples that are read and not yet given back by their consumers, and those that wait to be
    /// written [byte]. Beyond it go only samples that a consumer waits for.
    pub memory_bytes: usize,
    /// Fewest and most reads of the source in flight; equal ones fix the depth.
    pub in_flight: (usize, usize),
    /// Samples that are read before they are asked for, per stream; 0 reads only what is waited
    /// for.
    pub look_ahead: usize,
    /// The cache on local storage, if there is one.
    pub cache: Option<CacheOptions>,
    /// Samples go to their consumer at once and to the cache behind its back; otherwise they are
    /// written first and then read again, as a copying prefetcher does.
    pub tee: bool,
    /// The longest that a consumer waits for a minibatch.
    pub time_limit: Duration,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            in_flight: (8, 256),
            look_ahead: 16_384,
            cache: None,
            tee: true,
            time_limit: Duration::from_secs(30),
        }
    }
}

/// Where the depth starts, within its bounds: a first minibatch in few rounds, and not many
/// threads beside the consumer's where the source turns out to be fast.
const FIRST_DEPTH: usize = 16;

/// The memory of an engine, and who gets which part of it.
struct Pool {
    board: Board<Bytes, ReadError>,
    region: Region,
}

/// A sample's bytes; its memory goes back to the engine when the last who holds it lets go.
pub struct Bytes {
    pool: Arc<Pool>,
    place: Place,
    own: Option<Region>,
    length: usize,
}

impl Bytes {
    fn new(pool: &Arc<Pool>, place: Place, length: usize) -> io::Result<Self> {
        let own = match place {
            Place::Offset(_) => None,
            Place::Own => Some(Region::new(length)?),
        };
        Ok(Self {
            pool: pool.clone(),
            place,
            own,
            length,
        })
    }

    /// Where these bytes lie in the memory that they share with others, or their own memory.
    pub fn location(&self) -> Result<usize, &Region> {
        match (self.place, &self.own) {
            (Place::Offset(offset), _) => Ok(offset),
            (Place::Own, Some(region)) => Err(region),
            (Place::Own, None) => unreachable!("made together"),
        }
    }

    fn pointer(&self) -> *mut u8 {
        match self.location() {
            Ok(offset) => self.pool.region.at(offset, self.length).as_ptr(),
            Err(region) => region.at(0, self.length).as_ptr(),
        }
    }

    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the schedule gives a range to one sample at a time, and `&mut self` says that
        // nobody has been given this one yet.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.length) }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: nobody writes to it after it was filled, until it is dropped.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.length) }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Place::Offset(offset) = self.place {
            self.pool.board.give_back(offset, self.length);
        }
    }
}

/// What all threads of an engine have in common.
struct Shared {
    pool: Arc<Pool>,
    source: Source,
    cache: Option<Cache<Bytes>>,
    statistics: Statistics,
    options: EngineOptions,
    began: Instant,
    planned: OnceLock<Instant>,
    readers: Mutex<Vec<JoinHandle<()>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    closed: AtomicBool,
}

/// A data set, the threads that read it and the memory it is read into. Closed when dropped.
pub struct Engine {
    shared: Arc<Shared>,
}

impl Engine {
    /// Fails where the memory can't be had, or the cache's directory.
    pub fn new(source: Source, options: EngineOptions) -> io::Result<Self> {
        let statistics = Statistics::default();
        let fingerprint = source.fingerprint();
        let open = |cache| Cache::open(cache, fingerprint, source.len(), &statistics);
        let cache = options.cache.clone().map(open).transpose()?;
        let memory = Memory::new(options.memory_bytes);
        let region = Region::new(memory.size())?;
        let (floor, cap) = options.in_flight;
        let depth = Depth::new(floor, cap, FIRST_DEPTH);
        let schedule = Schedule::new(source.sizes().to_vec(), memory, depth, options.look_ahead);
        let shared = Shared {
            pool: Arc::new(Pool {
                board: Board::new(schedule),
                region,
            }),
            source,
            cache,
            statistics,
            options,
            began: Instant::now(),
            planned: OnceLock::new(),
            readers: Mutex::new(Vec::new()),
            writer: Mutex::new(None),
            closed: AtomicBool::new(false),
        };
        let shared = Arc::new(shared);
        if shared.cache.is_some() {
            let writer = shared.clone();
            let thread = thread("burstio-writer").spawn(move || writer.write())?;
            *shared
                .writer
                .lock()
                .expect("no thread panics under this lock") = Some(thread);
        }
        Ok(Self { shared })
    }

    /// A new consumer.
    pub fn stream(&self) -> Stream {
        Stream {
            id: self.shared.pool.board.open(),
            shared: self.shared.clone(),
            returned: None,
        }
    }

    /// The data set.
    pub fn source(&self) -> &Source {
        &self.shared.source
    }

    /// The memory that samples lie in, except those beyond the budget.
    pub fn region(&self) -> &Region {
        &self.shared.pool.region
    }

    /// How it is set up.
    pub fn options(&self) -> &EngineOptions {
        &self.shared.options
    }

    /// Whether the cache takes nothing more; true where there is none.
    pub fn cache_is_full(&self) -> bool {
        self.shared.cache.as_ref().is_none_or(Cache::is_full)
    }

    /// Whether the cache's writer is so far behind that samples would not be written.
    pub fn writer_is_behind(&self) -> bool {
        let most = self.shared.most_waiting() / 2;
        self.shared
            .cache
            .as_ref()
            .is_some_and(|cache| cache.waiting_bytes() > most)
    }

    /// Wait until all samples that have been read are written to the cache.
    pub fn drain(&self) {
        if let Some(cache) = &self.shared.cache {
            cache.drain();
        }
    }

    /// Names and values of all counters, among them the state of this moment.
    pub fn statistics(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.shared.statistics.all();
        let now = self.shared.pool.board.with(|schedule| {
            [
                ("from_memory", schedule.shared()),
                ("in_flight", schedule.in_flight().0 as u64),
                ("most_in_flight", schedule.in_flight().1 as u64),
                ("in_flight_limit", schedule.depth.limit() as u64),
                ("latency_us", (schedule.depth.latency_s() * 1e6) as u64),
                (
                    "memory_used",
                    (schedule.memory.size() - schedule.memory.free_bytes()) as u64,
                ),
            ]
        });
        all.extend(now);
        all
    }

    /// Minibatches by how long they were waited for (see [`Statistics::waits`]).
    pub fn waits(&self) -> Vec<u64> {
        self.shared.statistics.waits().to_vec()
    }

    /// End the threads, write what is to be written. Streams end with an error, bytes that are
    /// still held stay. Returns the number of threads that the source or the disk does not let
    /// go yet: they end when it does.
    pub fn close(&self) -> usize {
        if self.shared.closed.swap(true, Relaxed) {
            return 0;
        }
        self.shared.pool.board.stop();
        let readers = std::mem::take(&mut *self.shared.lock_readers());
        let left = join(readers, GRACE);
        let Some(cache) = &self.shared.cache else {
            return left;
        };
        cache.finish();
        let writer = self
            .shared
            .writer
            .lock()
            .expect("no thread panics under this lock")
            .take();
        let left = left + join(writer.into_iter().collect(), self.shared.options.time_limit);
        cache.release();
        left
    }
}

/// Wait for threads to end, at most so long; returns how many have not.
fn join(mut threads: Vec<JoinHandle<()>>, patience: Duration) -> usize {
    let deadline = Instant::now() + patience;
    loop {
        let (ended, running): (Vec<_>, Vec<_>) =
            threads.into_iter().partition(JoinHandle::is_finished);
        for thread in ended {
            let _ = thread.join();
        }
        if running.is_empty() || Instant::now() > deadline {
            return running.len();
        }
        threads = running;
        std::thread::sleep(Duration::from_micros(200));
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

fn thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new()
        .name(name.into())
        .stack_size(STACK_BYTES)
}

impl Shared {
    fn lock_readers(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.readers
            .lock()
            .expect("no thread panics under this lock")
    }

    fn write(&self) {
        if let Some(cache) = &self.cache {
            cache.write(&self.statistics);
        }
    }

    /// One more reader, if the depth allows more than there are.
    fn grow(self: &Arc<Self>) {
        let wanted = self.pool.board.with(|schedule| schedule.depth.limit()) + CACHE_READS;
        let mut readers = self.lock_readers();
        if readers.len() < wanted && !self.closed.load(Relaxed) {
            let reader = self.clone();
            // Where the system gives no more threads, as many as there are do it.
            readers.extend(thread("burstio-reader").spawn(move || reader.work()));
        }
    }

    fn work(self: Arc<Self>) {
        let cached = |sample| {
            self.cache
                .as_ref()
                .is_some_and(|cache| cache.size(sample).is_some())
        };
        while let Some(task) = self.pool.board.next_task(cached) {
            self.grow();
            self.perform(task);
        }
    }

    fn perform(self: &Arc<Self>, task: Task) {
        let begin = Instant::now();
        let Some(read) = self.read(task).transpose() else {
            return;
        };
        let result = read.map(|(bytes, _)| bytes).map_err(Arc::new);
        if result.is_err() {
            Statistics::count(&self.statistics.source_errors);
        } else {
            self.note_first(&self.statistics.first_sample_us);
        }
        self.pool
            .board
            .complete(task.sample, &result, begin.elapsed(), self.began.elapsed());
    }

    /// None where nobody wants it any more.
    fn read(self: &Arc<Self>, task: Task) -> Result<Option<(Arc<Bytes>, From)>, ReadError> {
        let Task {
            sample,
            from,
            place,
        } = task;
        let mut memory = match place {
            Some((length, place)) => Some(self.memory(sample, place, length)?),
            None => None,
        };
        if from == From::Cache {
            memory = match self.read_cached(sample, memory)? {
                Cached::Whole(bytes) => return Ok(Some((Arc::new(bytes), From::Cache))),
                Cached::Unwanted => return Ok(None),
                Cached::Spoilt(memory) => memory,
            };
            self.pool.board.fall_back(sample);
        }
        let bytes = self.read_source(sample, memory)?;
        Ok(bytes.map(|bytes| (bytes, From::Source)))
    }

    fn read_cached(
        self: &Arc<Self>,
        sample: Sample,
        memory: Option<Bytes>,
    ) -> Result<Cached, ReadError> {
        let Some(cache) = &self.cache else {
            return Ok(Cached::Spoilt(memory));
        };
        let Some(size) = cache.size(sample) else {
            return Ok(Cached::Spoilt(memory));
        };
        let Some(mut bytes) = self.fit(sample, memory, size)? else {
            return Ok(Cached::Unwanted);
        };
        if !cache.read(sample, bytes.as_mut()) {
            Statistics::count(&self.statistics.checksum_failures);
            return Ok(Cached::Spoilt(Some(bytes)));
        }
        Statistics::add(&self.statistics.cache_bytes_read, size);
        Statistics::count(&self.statistics.from_cache);
        Ok(Cached::Whole(bytes))
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
        let Some(cache) = &self.cache else {
            return Ok(Some(bytes));
        };
        let most_waiting = self.most_waiting();
        if cache.offer(sample, &bytes, most_waiting, &self.statistics) && !self.options.tee {
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
            Some(bytes) if bytes.length == size => return Ok(Some(bytes)),
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
    fn most_waiting(&self) -> usize {
        self.options.memory_bytes / 2
    }

    fn note_first(&self, counter: &AtomicU64) {
        if counter.load(Relaxed) == 0
            && let Some(planned) = self.planned.get()
        {
            let us = planned.elapsed().as_micros().max(1) as u64;
            let _ = counter.compare_exchange(0, us, Relaxed, Relaxed);
        }
    }
}

/// What became of reading the cache.
enum Cached {
    Whole(Bytes),
    Spoilt(Option<Bytes>),
    Unwanted,
}

/// One consumer: what it will take, in order. It ends when dropped.
pub struct Stream {
    shared: Arc<Shared>,
    id: StreamId,
    returned: Option<(Instant, usize)>,
}

/// Why there is no minibatch.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TakeError {
    /// A file can't be read, or does not come in time.
    #[error(transparent)]
    Read(ReadError),
    /// The consumer has been told to stop waiting.
    #[error("interrupted")]
    Interrupted,
    /// The engine is closed.
    #[error("the engine is closed")]
    Closed,
}

impl Stream {
    /// Append to what will be taken; reading begins at once. Samples are positions in the list of
    /// files; returns the first that is not one.
    pub fn plan(&self, samples: &[Sample]) -> Result<(), Sample> {
        let count = self.shared.source.len();
        if let Some(wrong) = samples.iter().find(|sample| **sample as usize >= count) {
            return Err(*wrong);
        }
        self.shared.planned.get_or_init(Instant::now);
        self.shared.pool.board.plan(self.id, samples);
        self.shared.grow();
        Ok(())
    }

    /// The next `count` samples, fewer at the end of the plan. `go_on` is asked every 100 ms.
    ///
    /// A sample that can't be read is an error once; the samples taken with it are gone, and the
    /// next call goes on behind them. After a time-out the same samples are waited for again.
    pub fn take(
        &mut self,
        count: usize,
        go_on: impl FnMut() -> bool,
    ) -> Result<Vec<(Sample, Arc<Bytes>)>, TakeError> {
        let board = &self.shared.pool.board;
        let limit = self.shared.options.time_limit;
        let begin = Instant::now();
        if let Some((returned, samples)) = self.returned.take() {
            board.with(|schedule| schedule.depth.consumed(samples, begin - returned));
        }
        let taken = board.take(self.id, count, limit, go_on);
        self.returned = Some((Instant::now(), count));
        self.shared.statistics.waited(begin.elapsed());
        self.shared
            .note_first(&self.shared.statistics.first_minibatch_us);
        let taken = taken.map_err(|why| self.explain(why))?;
        let read = |(sample, result): (Sample, Result<_, Arc<ReadError>>)| {
            result
                .map(|bytes| (sample, bytes))
                .map_err(|error| TakeError::Read((*error).clone()))
        };
        taken.into_iter().map(read).collect()
    }

    fn explain(&self, why: Unfulfilled) -> TakeError {
        let (sample, from) = match why {
            Unfulfilled::Interrupted => return TakeError::Interrupted,
            Unfulfilled::Stopped => return TakeError::Closed,
            Unfulfilled::Stalled(sample, from) => (sample, from),
        };
        let limit_s = self.shared.options.time_limit.as_secs_f64();
        let message = match from {
            Some(From::Cache) => format!("the cache has not given it within {limit_s} s"),
            Some(From::Source) => format!("the source has not given it within {limit_s} s"),
            None => format!("not begun within {limit_s} s: other reads of the source hang"),
        };
        TakeError::Read(ReadError::new(
            &self.shared.source.path(sample),
            Errno::TIMEDOUT,
            message,
        ))
    }

    /// Samples that are planned and not taken.
    pub fn remaining(&self) -> usize {
        self.shared.pool.board.remaining(self.id)
    }

    /// Forget what is planned and not taken.
    pub fn reset(&self) {
        self.shared.pool.board.reset(self.id);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.pool.board.close(self.id);
    }
}
