//! What is read next, for whom, and into which memory: the queueing logic, apart from all I/O.
//!
//! Every consumer has a stream: the samples it will take, in order. A sample that several streams
//! want is read once (a flight). Who gets memory is for [`super::admission`] to say.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::admission::Admission;
pub use super::admission::{Place, UNKNOWN};
use super::depth::Depth;
use super::memory::Memory;

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

/// Where a sample is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The data set's own file system.
    Source,
    /// The cache on local storage.
    Cache,
    /// The node that owns the sample.
    Peer,
}

/// What a stream gets for one position.
pub type Delivery<T, E> = (Sample, Result<Arc<T>, Arc<E>>);

enum Slot<T, E> {
    Waiting(Sample),
    Done(Delivery<T, E>),
}

struct Stream<T, E> {
    planned: VecDeque<Sample>,
    slots: VecDeque<Slot<T, E>>,
    head: u64,      // position of slots[0]
    wanted: usize,  // samples somebody waits for: none, or the next minibatch
    missing: usize, // of these, not there yet
}

struct Flight {
    waiters: Vec<(StreamId, u64)>,
    from: From,
    settled: bool, // has its place
}

/// All streams of one engine. `T` is a sample in memory, `E` why it could not be had.
pub struct Schedule<T, E> {
    streams: BTreeMap<StreamId, Stream<T, E>>,
    flights: HashMap<Sample, Flight>,
    resident: HashMap<Sample, Weak<T>>,
    prune_at: usize,
    in_flight: usize,
    most_in_flight: usize,
    from_cache: usize, // reads of the cache in flight
    from_peers: usize, // questions to peers in flight
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
            resident: HashMap::new(),
            prune_at: 1024,
            in_flight: 0,
            most_in_flight: 0,
            from_cache: 0,
            from_peers: 0,
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
        let stream = Stream {
            planned: VecDeque::new(),
            slots: VecDeque::new(),
            head: 0,
            wanted: 0,
            missing: 0,
        };
        self.streams.insert(self.next_stream, stream);
        self.next_stream
    }

    /// Forget all that `stream` has planned and not taken. What it held comes back, to be dropped
    /// by the caller after it has let go of its lock.
    #[must_use]
    pub fn reset(&mut self, stream: StreamId) -> Vec<Arc<T>> {
        let Some(found) = self.streams.get_mut(&stream) else {
            return Vec::new();
        };
        found.planned.clear();
        (found.wanted, found.missing) = (0, 0);
        found.head += found.slots.len() as u64;
        let held = found.slots.drain(..).filter_map(|slot| match slot {
            Slot::Done((_, Ok(sample))) => Some(sample),
            _ => None,
        });
        let held = held.collect();
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
            found.planned.extend(samples);
        }
    }

    /// Samples that `stream` has planned and not taken.
    pub fn remaining(&self, stream: StreamId) -> usize {
        self.streams
            .get(&stream)
            .map_or(0, |found| found.planned.len() + found.slots.len())
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
            .map(|(id, stream)| (stream.slots.len(), *id))
            .collect();
        turns.sort_unstable();
        turns
            .into_iter()
            .find_map(|(_, id)| self.next_task_of(id, &whence))
    }

    fn next_task_of(&mut self, id: StreamId, whence: &impl Fn(Sample) -> From) -> Option<Task> {
        loop {
            let stream = self.streams.get_mut(&id)?;
            let sample = *stream.planned.front()?;
            let ahead = stream.slots.len();
            let urgent = ahead < stream.wanted;
            if !urgent && ahead >= self.look_ahead {
                return None;
            }
            if let Some(here) = self.resident.get(&sample).and_then(Weak::upgrade) {
                stream.planned.pop_front();
                stream.slots.push_back(Slot::Done((sample, Ok(here))));
                self.shared += 1;
                self.fulfilled |= stream.arrived(ahead);
                continue;
            }
            let position = stream.head + ahead as u64;
            if let Some(flight) = self.flights.get_mut(&sample) {
                flight.waiters.push((id, position));
                stream.wait_for_next();
                self.shared += 1;
                continue;
            }
            let from = whence(sample);
            let (now, most) = match from {
                From::Source => (self.in_flight, self.depth.limit()),
                From::Cache => (self.from_cache, CACHE_READS),
                From::Peer => (self.from_peers, self.most_from_peers),
            };
            let later = from == From::Source && self.hold_back && !urgent;
            if now >= most || later {
                return None;
            }
            let place = self.admission.admit(sample, urgent)?;
            let flight = Flight {
                waiters: vec![(id, position)],
                from,
                settled: place.is_some(),
            };
            self.flights.insert(sample, flight);
            *self.reads(from) += 1;
            self.most_in_flight = self.most_in_flight.max(self.in_flight);
            self.streams.get_mut(&id)?.wait_for_next();
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
            *self.reads(flight.from) -= 1;
            return None;
        }
        Some(self.admission.place(size))
    }

    /// A sample of `size` bytes has been dropped.
    pub fn give_back(&mut self, place: Place, size: usize) {
        self.admission.give_back(place, size);
    }

    fn reads(&mut self, from: From) -> &mut usize {
        match from {
            From::Source => &mut self.in_flight,
            From::Cache => &mut self.from_cache,
            From::Peer => &mut self.from_peers,
        }
    }

    /// The cache's copy was no good, or the peer has none: the same flight goes on from the source.
    pub fn fall_back(&mut self, sample: Sample) {
        if let Some(flight) = self.flights.get_mut(&sample) {
            let from = std::mem::replace(&mut flight.from, From::Source);
            *self.reads(from) -= 1;
            self.in_flight += 1;
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
        *self.reads(flight.from) -= 1;
        if flight.from == From::Source {
            self.depth.finished(latency, now);
        }
        if let Ok(here) = result {
            self.remember(sample, here);
        }
        for (id, position) in flight.waiters {
            let Some(stream) = self.streams.get_mut(&id) else {
                continue;
            };
            let slot = (position - stream.head) as usize;
            stream.slots[slot] = Slot::Done((sample, result.clone()));
            self.fulfilled |= stream.arrived(slot);
        }
    }

    fn remember(&mut self, sample: Sample, here: &Arc<T>) {
        if self.resident.len() >= self.prune_at {
            self.resident.retain(|_, there| there.strong_count() > 0);
            self.prune_at = (2 * self.resident.len()).max(1024);
        }
        self.resident.insert(sample, Arc::downgrade(here));
    }

    /// The next `count` samples of `stream` (fewer at the end of the plan), once all are there.
    /// Until then None, and they are wanted: they may go beyond the budget.
    pub fn take(&mut self, stream: StreamId, count: usize) -> Option<Vec<Delivery<T, E>>> {
        let count = count.min(self.remaining(stream));
        let Some(found) = self.streams.get_mut(&stream) else {
            return Some(Vec::new());
        };
        let there = found.slots.iter().take(count);
        let done = there.filter(|slot| matches!(slot, Slot::Done(_))).count();
        if done < count {
            found.wanted = count;
            found.missing = count - done;
            return None;
        }
        found.wanted = 0;
        found.head += count as u64;
        let taken = found.slots.drain(..count).filter_map(|slot| match slot {
            Slot::Done(delivery) => Some(delivery),
            Slot::Waiting(_) => None,
        });
        Some(taken.collect())
    }

    /// Whether a minibatch that somebody waits for has become complete since this was last asked.
    pub fn fulfilled(&mut self) -> bool {
        std::mem::take(&mut self.fulfilled)
    }

    /// Whether it is worth asking for a task: there may be none all the same.
    pub fn may_have_task(&self) -> bool {
        let room = self.admission.has_room();
        self.streams.values().any(|stream| {
            let ahead = stream.slots.len();
            !stream.planned.is_empty()
                && (ahead < stream.wanted || (room && ahead < self.look_ahead))
        })
    }

    /// Whether a stream other than this has samples whose reading has not begun.
    pub fn others_have_plans(&self, stream: StreamId) -> bool {
        self.streams
            .iter()
            .any(|(id, other)| *id != stream && !other.planned.is_empty())
    }

    /// Samples that streams got because another one's were in memory or on their way.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// The first sample that `stream` still waits for, and where it is being read from; None for
    /// the latter where it has not been begun.
    pub fn awaited(&self, stream: StreamId) -> Option<(Sample, Option<From>)> {
        let found = self.streams.get(&stream)?;
        let waiting = found.slots.iter().find_map(|slot| match slot {
            Slot::Waiting(sample) => Some(*sample),
            Slot::Done(_) => None,
        });
        match waiting {
            Some(sample) => Some((sample, self.flights.get(&sample).map(|flight| flight.from))),
            None => found.planned.front().map(|sample| (*sample, None)),
        }
    }

    /// The consumer has given up waiting.
    pub fn give_up(&mut self, stream: StreamId) {
        if let Some(found) = self.streams.get_mut(&stream) {
            found.wanted = 0;
        }
    }

    /// Reads of the source in flight, now and at most.
    pub fn in_flight(&self) -> (usize, usize) {
        (self.in_flight, self.most_in_flight)
    }
}

impl<T, E> Stream<T, E> {
    /// The sample for this slot is there; true when it was the last that somebody waits for.
    fn arrived(&mut self, slot: usize) -> bool {
        if slot >= self.wanted {
            return false;
        }
        self.missing -= 1;
        self.missing == 0
    }

    fn wait_for_next(&mut self) {
        if let Some(sample) = self.planned.pop_front() {
            self.slots.push_back(Slot::Waiting(sample));
        }
    }
}
