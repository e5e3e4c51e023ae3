//! The queueing logic in any order of events: what consumers get, in how much memory, and that it
//! always goes on. No threads, no files.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use burstio::prefetch::depth::Depth;
use burstio::prefetch::memory::{Memory, PAGE};
use burstio::prefetch::schedule::{
    CACHE_READS, From, Place, Sample, Schedule, StreamId, Task, UNKNOWN,
};
use proptest::prelude::*;

const SAMPLES: u32 = 12;
const PAGES: usize = 6;

/// A sample in memory: where, and how long.
struct Held {
    sample: Sample,
    place: Place,
}

fn size(sample: Sample) -> usize {
    (sample as usize % 3 + 1) * PAGE
}

/// A quarter is in the cache, and another is a peer's.
fn whence(sample: Sample) -> From {
    match sample % 4 {
        0 => From::Cache,
        1 => From::Peer,
        _ => From::Source,
    }
}

#[derive(Clone, Debug)]
enum Event {
    Plan(prop::sample::Index, Vec<Sample>),
    Ask(prop::sample::Index, usize),
    FallBack(prop::sample::Index),
    Finish(prop::sample::Index),
    LetGo(prop::sample::Index),
    Unplan(prop::sample::Index),
    Reset(prop::sample::Index),
}

fn event() -> impl Strategy<Value = Event> {
    let any = any::<prop::sample::Index>;
    prop_oneof![
        2 => (any(), prop::collection::vec(0..SAMPLES, 1..8)).prop_map(|(s, p)| Event::Plan(s, p)),
        4 => (any(), 1usize..4).prop_map(|(s, n)| Event::Ask(s, n)),
        2 => any().prop_map(Event::FallBack),
        6 => any().prop_map(Event::Finish),
        4 => any().prop_map(Event::LetGo),
        1 => any().prop_map(Event::Unplan),
        1 => any().prop_map(Event::Reset),
    ]
}

/// The schedule with everything around it that threads would do.
struct World {
    schedule: Schedule<Held, ()>,
    streams: Vec<(StreamId, Vec<Sample>)>, // with what each still has to get
    reading: Vec<Task>,                    // from where it was begun
    fallen_back: HashSet<Sample>,          // of these
    held: Vec<Arc<Held>>,
}

impl World {
    fn new(sizes_known: bool, look_ahead: usize) -> Self {
        let sizes = (0..SAMPLES).map(|i| if sizes_known { size(i) as u64 } else { UNKNOWN });
        let memory = Memory::new(PAGES * PAGE);
        let depth = Depth::new(3, 3, 3);
        let mut schedule = Schedule::new(sizes.collect(), memory, depth, look_ahead);
        schedule.most_from_peers = 1;
        let streams = (0..3).map(|_| (schedule.open(), Vec::new())).collect();
        Self {
            schedule,
            streams,
            reading: Vec::new(),
            fallen_back: HashSet::new(),
            held: Vec::new(),
        }
    }

    /// Begin all that may be begun.
    fn begin(&mut self) {
        while let Some(task) = self.schedule.next_task(whence) {
            let twice = self.reading.iter().any(|other| other.sample == task.sample);
            assert!(!twice, "sample {} is being read already", task.sample);
            let here = self.held.iter().any(|held| held.sample == task.sample);
            assert!(!here, "sample {} is in memory", task.sample);
            self.reading.push(task);
        }
        let reads = |from| self.reading.iter().filter(|task| task.from == from).count();
        assert!(reads(From::Source) <= 3, "politeness");
        assert!(reads(From::Peer) <= 1, "politeness");
        assert!(reads(From::Cache) <= CACHE_READS, "each has a thread");
        let of_source = reads(From::Source) + self.fallen_back.len();
        assert_eq!(self.schedule.in_flight().0, of_source);
    }

    /// What is nearer than the source is not to be had.
    fn fall_back(&mut self, at: usize) {
        let Task { sample, from, .. } = self.reading[at];
        if from != From::Source && self.fallen_back.insert(sample) {
            self.schedule.fall_back(sample);
        }
    }

    /// One read ends.
    fn finish(&mut self, at: usize) {
        let task = self.reading[at];
        self.fallen_back.remove(&task.sample);
        let place = match task.place {
            Some((length, place)) => {
                assert_eq!(length, size(task.sample));
                place
            }
            None => match self.schedule.place(task.sample, size(task.sample)) {
                Some(place) => place,
                None => {
                    self.reading.swap_remove(at);
                    return; // nobody wants it any more
                }
            },
        };
        self.reading.swap_remove(at);
        let here = Arc::new(Held {
            sample: task.sample,
            place,
        });
        let (latency, now) = (Duration::from_millis(1), Duration::from_secs(1));
        self.schedule
            .complete(task.sample, &Ok(here.clone()), latency, now);
        self.let_go(here);
    }

    /// Somebody drops a sample; the last gives its memory back.
    fn let_go(&mut self, here: Arc<Held>) {
        if let Some(last) = Arc::into_inner(here) {
            self.schedule.give_back(last.place, size(last.sample));
        }
    }

    fn ask(&mut self, which: usize, count: usize) -> bool {
        let (stream, left) = &mut self.streams[which];
        let Some(taken) = self.schedule.take(*stream, count) else {
            return false;
        };
        let expected: Vec<Sample> = left.drain(..taken.len()).collect();
        assert_eq!(taken.len(), count.min(expected.len() + left.len()));
        for ((sample, result), expected) in taken.into_iter().zip(expected) {
            assert_eq!(sample, expected);
            let here = result.unwrap_or_else(|_| unreachable!("nothing fails here"));
            assert_eq!(here.sample, sample);
            self.held.push(here);
        }
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Plan(which, samples) => {
                let (stream, left) = &mut self.streams[which.index(3)];
                self.schedule.plan(*stream, &samples);
                left.extend(samples);
            }
            Event::Ask(which, count) => {
                self.ask(which.index(3), count);
            }
            Event::FallBack(which) if !self.reading.is_empty() => {
                self.fall_back(which.index(self.reading.len()));
            }
            Event::Finish(which) if !self.reading.is_empty() => {
                self.finish(which.index(self.reading.len()));
            }
            Event::LetGo(which) if !self.held.is_empty() => {
                let here = self.held.swap_remove(which.index(self.held.len()));
                self.let_go(here);
            }
            Event::Unplan(which) => {
                let (stream, left) = &mut self.streams[which.index(3)];
                let unplanned = self.schedule.unplan(*stream);
                assert_eq!(unplanned, left.split_off(left.len() - unplanned.len()));
            }
            Event::Reset(which) => {
                let (stream, left) = &mut self.streams[which.index(3)];
                left.clear();
                let dropped = self.schedule.reset(*stream);
                dropped.into_iter().for_each(|here| self.let_go(here));
            }
            Event::FallBack(_) | Event::Finish(_) | Event::LetGo(_) => {}
        }
    }

    /// A consumer that takes all it has planned must get it, though nobody lets anything go.
    fn run_dry(&mut self) {
        for which in 0..3 {
            while !self.streams[which].1.is_empty() {
                if self.ask(which, 2) {
                    continue;
                }
                self.begin();
                if self.ask(which, 2) {
                    continue; // another stream had it in memory
                }
                assert!(!self.reading.is_empty(), "a consumer waits for ever");
                self.finish(0);
            }
        }
    }
}

#[test]
fn who_waits_for_peers_keeps_nothing_from_a_peer() {
    let mut world = World::new(true, 10);
    let (own, _) = world.streams[0];
    world.schedule.plan(own, &[1, 5, 9]); // all of them a peer's: one is asked for, others wait
    world.begin();
    assert_eq!(world.reading.len(), 1);
    let (of_peer, _) = world.streams[1];
    world.schedule.plan(of_peer, &[2]);
    assert!(world.schedule.take(of_peer, 1).is_none());
    world.begin();
    assert_eq!(world.reading.last().map(|task| task.sample), Some(2));
}

#[test]
fn who_reads_the_source_in_place_of_a_peer_has_the_thread_of_a_question() {
    let mut world = World::new(true, 10);
    let (own, _) = world.streams[0];
    world.schedule.plan(own, &[1, 5, 9]); // all of them a peer's
    world.begin();
    world.fall_back(0);
    world.begin();
    assert_eq!(world.reading.len(), 1, "no thread is left for a question");
    assert_eq!(world.schedule.in_flight(), (1, 1));
    world.finish(0);
    world.begin();
    assert_eq!(world.reading.first().map(|task| task.sample), Some(5));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn consumers_get_what_they_planned_whatever_happens(
        sizes_known: bool,
        look_ahead in 0usize..10,
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut world = World::new(sizes_known, look_ahead);
        for event in events {
            world.happen(event);
            world.begin();
        }
        world.run_dry();
        while !world.reading.is_empty() {
            world.finish(0);
        }
        for held in std::mem::take(&mut world.held) {
            world.let_go(held);
        }
        prop_assert_eq!(world.schedule.admission.memory.free_bytes(), PAGES * PAGE);
        prop_assert_eq!(world.schedule.in_flight().0, 0);
    }
}
