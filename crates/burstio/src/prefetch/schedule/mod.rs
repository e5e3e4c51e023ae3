//! What is read next, for whom, and into which memory: the queueing logic, apart from all I/O.
//!
//! Every consumer has a stream: the samples it will take, in order. A sample that several streams
//! want is read once (a flight). Who gets memory is for [`super::admission`] to say.

mod flight;
mod queue;
mod reads;
mod resident;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::admission::Admission;
pub use super::admission::{Place, UNKNOWN};
use super::depth::Depth;
use super::memory::Memory;
use flight::Flight;
use queue::Queue;
pub use reads::From;
use reads::Reads;
use resident::Resident;

/// A sample: its position in the list of files.
pub type Sample = u32;
/// A consumer's handle.
pub type StreamId = u64;

/// Reads of the cache in flight, at most: enough for a local disk, few enough to leave the
/// processors to those who decode.
pub const CACHE_READS: usize = 4;

/// Something for a worker to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// What to read.
    pub sample: Sample,
    /// From the source, the local cache or a peer.
    pub from: From,
    /// Size and place, where the size is known.
    pub place: Option<(usize, Place)>,
}

/// What a stream gets for one position.
pub type Delivery<T, E> = (Sample, Result<Arc<T>, Arc<E>>);

/// All streams of one engine. `T` is a sample in memory, `E` why it could not be had.
pub struct Schedule<T, E> {
    streams: BTreeMap<StreamId, Queue<T, E>>,
    flights: HashMap<Sample, Flight>,
    resident: Resident<T>,
    reads: Reads,
    look_ahead: usize,
    next_stream: StreamId,
    fulfilled: bool,
    shared: u64,
    /// Questions to peers in flight, at most.
    pub most_from_peers: usize,
    /// The source is read only for those who wait.
    pub hold_back: bool,
    /// Who gets which part of the budget's memory.
    pub admission: Admission,
    /// The limit of reads of the source.
    pub depth: Depth,
}

impl<T, E> Schedule<T, E> {
    /// `sizes` of all samples [byte], each known or [`UNKNOWN`]; `look_ahead` is the most samples
    /// that are read before they are asked for, per stream.
    pub fn new(sizes: Vec<u64>, memory: Memory, depth: Depth, look_ahead: usize) -> Self {
        Self {
            streams: BTreeMap::new(),
            flights: HashMap::new(),
            resident: Resident::new(),
            reads: Reads::default(),
            most_from_peers: 0,
            look_ahead,
            next_stream: 0,
            fulfilled: false,
            shared: 0,
            hold_back: false,
            admission: Admission::new(sizes, memory),
            depth,
        }
    }

    /// A new consumer.
    pub fn open(&mut self) -> StreamId {
        self.next_stream += 1;
        self.streams.insert(self.next_stream, Queue::new());
        self.next_stream
    }

    /// Forget all that `stream` has planned and not taken. What it held comes back, to be dropped
    /// by the caller after it has let go of its lock.
    #[must_use]
    pub fn reset(&mut self, stream: StreamId) -> Vec<Arc<T>> {
        let Some(found) = self.streams.get_mut(&stream) else {
            return Vec::new();
        };
        let held = found.reset();
        for flight in self.flights.values_mut() {
            flight.waiters.retain(|(waiter, _)| *waiter != stream);
        }
        held
    }

    /// The consumer is gone; what it held comes back, as from `reset`.
    #[must_use]
    pub fn close(&mut self, stream: StreamId) -> Vec<Arc<T>> {
        let held = self.reset(stream);
        self.streams.remove(&stream);
        held
    }

    /// Append to what `stream` will take.
    pub fn plan(&mut self, stream: StreamId, samples: &[Sample]) {
        if let Some(found) = self.streams.get_mut(&stream) {
            found.plan(samples);
        }
    }

    /// Forget what `stream` has planned and whose reading has not begun; it comes back.
    pub fn unplan(&mut self, stream: StreamId) -> VecDeque<Sample> {
        let found = self.streams.get_mut(&stream);
        found.map_or(VecDeque::new(), Queue::unplan)
    }

    /// Samples that `stream` has planned and not taken.
    pub fn remaining(&self, stream: StreamId) -> usize {
        self.streams.get(&stream).map_or(0, Queue::len)
    }

    /// The next thing to read, if there is any that may be read now. `whence` tells where a sample
    /// is to be had.
    ///
    /// Each of these places has a limit of its own, so that a read of the source or of the cache
    /// never waits for one of a peer: what a peer asks for is read, whoever waits for peers here.
    ///
    /// The stream that has the fewest samples ahead of it comes first; within a stream, order is
    /// order, because memory given to a later sample could be what an earlier one waits for.
    pub fn next_task(&mut self, whence: impl Fn(Sample) -> From) -> Option<Task> {
        if let (1, Some(id)) = (self.streams.len(), self.streams.keys().next()) {
            return self.next_task_of(*id, &whence);
        }
        let mut turns: Vec<(usize, StreamId)> = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.next().is_some()) // many idle ones are peers' connections
            .map(|(id, stream)| (stream.ahead(), *id))
            .collect();
        turns.sort_unstable();
        turns
            .into_iter()
            .find_map(|(_, id)| self.next_task_of(id, &whence))
    }

    fn next_task_of(&mut self, id: StreamId, whence: &impl Fn(Sample) -> From) -> Option<Task> {
        loop {
            let stream = self.streams.get_mut(&id)?;
            let sample = stream.next()?;
            let urgent = stream.is_urgent();
            if !urgent && stream.ahead() >= self.look_ahead {
                return None;
            }
            if let Some(here) = self.resident.find(sample) {
                self.shared += 1;
                self.fulfilled |= stream.have_next(here);
                continue;
            }
            if let Some(flight) = self.flights.get_mut(&sample) {
                flight.waiters.push((id, stream.wait_for_next()));
                self.shared += 1;
                continue;
            }
            let from = whence(sample);
            let most = match from {
                From::Source => self.depth.limit(),
                From::Cache => CACHE_READS,
                From::Peer => self.most_from_peers,
            };
            let later = from == From::Source && self.hold_back && !urgent;
            if self.reads.of(from) >= most || later {
                return None;
            }
            let place = self.admission.admit(sample, urgent)?;
            let flight = Flight {
                waiters: vec![(id, stream.wait_for_next())],
                begun: from,
                fell_back: false,
                settled: place.is_some(),
            };
            self.flights.insert(sample, flight);
            self.reads.begin(from);
            return Some(Task {
                sample,
                from,
                place,
            });
        }
    }

    /// Memory for a sample whose size has just been learnt; None where its streams are gone and it
    /// need not be read: its flight has ended then.
    ///
    /// It never waits: it would keep a read from those who wait for another sample. Where the guess
    /// of its size was too small it goes beyond the budget, and others wait the longer.
    pub fn place(&mut self, sample: Sample, size: usize) -> Option<Place> {
        self.admission.learn(sample, size);
        let flight = self.flights.get_mut(&sample)?;
        if !std::mem::replace(&mut flight.settled, true) {
            self.admission.settle();
        }
        if flight.waiters.is_empty() {
            let flight = self.flights.remove(&sample)?;
            self.end(&flight);
            return None;
        }
        Some(self.admission.place(size))
    }

    fn end(&mut self, flight: &Flight) {
        self.reads.end(flight.begun);
        if flight.fell_back {
            self.reads.end(From::Source);
        }
    }

    /// A sample of `size` bytes has been dropped.
    pub fn give_back(&mut self, place: Place, size: usize) {
        self.admission.give_back(place, size);
    }

    /// The cache's copy was no good, or the peer has none: the same flight goes on from the source,
    /// beyond the limit of such reads if need be, once.
    ///
    /// It keeps the place it began with as well: given to another read, that one would have no
    /// thread, or this one would have taken the thread of those that a peer waits for.
    pub fn fall_back(&mut self, sample: Sample) {
        if let Some(flight) = self.flights.get_mut(&sample) {
            flight.fell_back = true;
            self.reads.begin(From::Source);
        }
    }

    /// A read has ended, after `latency`, at `now` since some fixed moment.
    pub fn complete(
        &mut self,
        sample: Sample,
        result: &Result<Arc<T>, Arc<E>>,
        latency: Duration,
        now: Duration,
    ) {
        let Some(flight) = self.flights.remove(&sample) else {
            return;
        };
        if !flight.settled {
            self.admission.settle();
        }
        self.end(&flight);
        if flight.reads_from() == From::Source {
            self.depth.finished(latency, now);
        }
        if let Ok(here) = result {
            self.resident.remember(sample, here);
        }
        for (id, position) in flight.waiters {
            if let Some(stream) = self.streams.get_mut(&id) {
                self.fulfilled |= stream.arrived(position, (sample, result.clone()));
            }
        }
    }

    /// The next `count` samples of `stream` (fewer at the end of the plan), once all are there.
    /// Until then None, and they are wanted: they may go beyond the budget.
    pub fn take(&mut self, stream: StreamId, count: usize) -> Option<Vec<Delivery<T, E>>> {
        match self.streams.get_mut(&stream) {
            Some(found) => found.take(count),
            None => Some(Vec::new()),
        }
    }

    /// Whether a minibatch that somebody waits for has become complete since this was last asked.
    pub fn fulfilled(&mut self) -> bool {
        std::mem::take(&mut self.fulfilled)
    }

    /// Whether it is worth asking for a task: there may be none all the same.
    pub fn may_have_task(&self) -> bool {
        let room = self.admission.has_room();
        self.streams.values().any(|stream| {
            stream.next().is_some()
                && (stream.is_urgent() || (room && stream.ahead() < self.look_ahead))
        })
    }

    /// Whether a stream other than this has samples whose reading has not begun.
    pub fn others_have_plans(&self, stream: StreamId) -> bool {
        self.streams
            .iter()
            .any(|(id, other)| *id != stream && other.next().is_some())
    }

    /// Samples that streams got because another one's were in memory or on their way.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// The first sample that `stream` still waits for, and where it is being read from; None for
    /// the latter where it has not been begun.
    pub fn awaited(&self, stream: StreamId) -> Option<(Sample, Option<From>)> {
        let (sample, begun) = self.streams.get(&stream)?.awaited()?;
        let flight = self.flights.get(&sample).filter(|_| begun);
        Some((sample, flight.map(Flight::reads_from)))
    }

    /// The consumer has given up waiting.
    pub fn give_up(&mut self, stream: StreamId) {
        if let Some(found) = self.streams.get_mut(&stream) {
            found.give_up();
        }
    }

    /// Reads of the source in flight, now and at most.
    pub fn in_flight(&self) -> (usize, usize) {
        (self.reads.of(From::Source), self.reads.most_of_source())
    }
}
