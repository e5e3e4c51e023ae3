//! The engine: a data set, the threads that read it, and what they may use.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::accepting::Acceptor;
use super::board::Board;
use super::bytes::Pool;
use super::cache::{Cache, CacheOptions};
use super::depth::Depth;
use super::memory::Memory;
use super::peers::{self, PEER_READS, PeerOptions, Peers};
use super::reading::{Shared, thread};
use super::region::Region;
use super::schedule::{Sample, Schedule};
use super::source::Source;
use super::statistics::Statistics;
use super::stream::Stream;

/// How long closing waits for a source that does not answer, and for who waits for a disk.
pub(super) const GRACE: Duration = Duration::from_secs(2);

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
    /// The other nodes of a job that reads the same data set, where each is to read its own part.
    pub peers: Option<PeerOptions>,
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
            peers: None,
            time_limit: Duration::from_secs(30),
        }
    }
}

/// Where the depth starts, within its bounds: a first minibatch in few rounds, and not many
/// threads beside the consumer's where the source turns out to be fast.
const FIRST_DEPTH: usize = 16;

/// A data set, the threads that read it and the memory it is read into. Closed when dropped.
pub struct Engine {
    shared: Arc<Shared>,
    serving: Option<Acceptor<TcpStream>>,
}

impl Engine {
    /// Fails where the memory can't be had, the cache's directory, or a place among the peers.
    pub fn new(source: Source, options: EngineOptions) -> io::Result<Self> {
        let statistics = Statistics::default();
        let fingerprint = source.fingerprint();
        let find = |peers| Peers::new(peers, fingerprint, options.time_limit);
        let peers = options.peers.as_ref().map(find).transpose()?;
        let owns = |sample| peers.as_ref().is_none_or(|peers| peers.owns(sample));
        let open = |cache| Cache::open(cache, fingerprint, source.len(), owns, &statistics);
        let cache = options.cache.clone().map(open).transpose()?;
        let memory = Memory::new(options.memory_bytes);
        let region = Region::new(memory.size())?;
        let (floor, cap) = options.in_flight;
        let depth = Depth::new(floor, cap, FIRST_DEPTH);
        let sizes = source.sizes().to_vec();
        let mut schedule = Schedule::new(sizes, memory, depth, options.look_ahead);
        if peers.is_some() {
            schedule.most_from_peers = cap.clamp(1, PEER_READS);
        }
        let shared = Shared {
            pool: Arc::new(Pool {
                board: Board::new(schedule),
                region,
            }),
            source,
            cache,
            peers,
            statistics,
            options,
            began: Instant::now(),
            planned: OnceLock::new(),
            readers: Mutex::new(Vec::new()),
            writer: Mutex::new(None),
            closed: AtomicBool::new(false),
        };
        let mut engine = Self {
            shared: Arc::new(shared),
            serving: None,
        }; // from here on what fails closes it
        engine.begin_writing()?;
        engine.begin_serving()?;
        Ok(engine)
    }

    fn begin_writing(&self) -> io::Result<()> {
        if self.shared.cache.is_some() {
            let writer = self.shared.clone();
            let thread = thread("burstio-writer").spawn(move || writer.write())?;
            *self.lock_writer() = Some(thread);
        }
        Ok(())
    }

    fn begin_serving(&mut self) -> io::Result<()> {
        if let Some(options) = &self.shared.options.peers {
            let asked = self.shared.clone();
            let listener = options.listener.try_clone()?.into();
            let serve = move |peer: &_| {
                let _ = peers::serve(&asked, peer); // a peer that is gone needs no answer
            };
            self.serving = Some(Acceptor::new(listener, "burstio-peer", serve)?);
        }
        Ok(())
    }

    fn lock_writer(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        let writer = self.shared.writer.lock();
        writer.expect("no thread panics under this lock")
    }

    /// A new consumer.
    pub fn stream(&self) -> Stream {
        Stream::new(&self.shared, true)
    }

    /// A consumer whose waits are nobody's, and whose pace says nothing of what is wanted.
    pub fn background_stream(&self) -> Stream {
        Stream::new(&self.shared, false)
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
        let shared = &self.shared;
        shared
            .cache
            .as_ref()
            .is_some_and(|cache| shared.is_behind(cache))
    }

    /// Whether this node caches a sample; without peers it may cache all.
    pub fn owns(&self, sample: Sample) -> bool {
        self.shared.owns(sample)
    }

    /// Wait until all samples that have been read are written to the cache.
    pub fn drain(&self) {
        if let Some(cache) = &self.shared.cache {
            cache.drain();
        }
    }

    /// For those who read the source themselves.
    pub(super) fn counters(&self) -> &Statistics {
        &self.shared.statistics
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
                ("memory_used", schedule.admission.memory.used_bytes() as u64),
            ]
        });
        all.extend(now);
        all
    }

    /// Of each peer that failed: its name, its address, and how it failed first.
    pub fn peer_faults(&self) -> Vec<String> {
        self.shared.peers.as_ref().map_or(Vec::new(), Peers::faults)
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
        let asked = self.serving.as_ref().map_or(Vec::new(), Acceptor::stop);
        if let Some(peers) = &self.shared.peers {
            peers.stop();
        }
        self.shared.pool.board.stop();
        let readers = std::mem::take(&mut *self.shared.lock_readers());
        let left = join(readers, GRACE) + join(asked, GRACE);
        let Some(cache) = &self.shared.cache else {
            return left;
        };
        cache.finish();
        let writer = self.lock_writer().take().into_iter().collect();
        let writing = join(writer, self.shared.options.time_limit);
        if writing == 0 {
            cache.release(); // or it would be taken from under the writer's hands
        }
        left + writing
    }
}

/// Wait for threads to end, at most so long; returns how many have not.
pub(super) fn join(mut threads: Vec<JoinHandle<()>>, patience: Duration) -> usize {
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
