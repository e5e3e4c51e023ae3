//! Answers that are given at their time: an operation waits in a queue and not in a thread, so as
//! many can wait at once as clients ask for.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

type Answer = Box<dyn FnOnce() + Send>;

/// Threads that give the answers; each copies what was read to the kernel.
const LANES: usize = 4;

/// A clock, and what is to be done when it shows a time.
pub struct Later {
    began: Instant,
    lanes: Vec<Arc<Lane>>,
    next: AtomicUsize,
}

#[derive(Default)]
struct Lane {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    due: BinaryHeap<Due>,
    arrived: u64,
    ended: bool,
}

struct Due {
    at: Instant,
    number: u64, // answers of one moment keep their order
    answer: Answer,
}

impl Later {
    /// Starts the threads.
    pub fn new() -> std::io::Result<Self> {
        let lanes: Vec<Arc<Lane>> = (0..LANES).map(|_| Arc::default()).collect();
        for lane in &lanes {
            let lane = lane.clone();
            let serve = move || lane.serve();
            std::thread::Builder::new()
                .name("answers".into())
                .spawn(serve)?;
        }
        Ok(Self {
            began: Instant::now(),
            lanes,
            next: AtomicUsize::new(0),
        })
    }

    /// Seconds since this clock was made.
    pub fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Do `answer` when the clock shows `at_s`; at once, in this thread, where that is past.
    pub fn at(&self, at_s: f64, answer: impl FnOnce() + Send + 'static) {
        if at_s <= self.now() {
            return answer();
        }
        let at = self.began + Duration::from_secs_f64(at_s);
        let lane = &self.lanes[self.next.fetch_add(1, Relaxed) % LANES];
        lane.add(at, Box::new(answer));
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        for lane in &self.lanes {
            lane.waiting().ended = true;
            lane.changed.notify_one();
        }
    }
}

impl Lane {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect(ALIVE)
    }

    fn add(&self, at: Instant, answer: Answer) {
        let mut waiting = self.waiting();
        let number = waiting.arrived;
        waiting.arrived += 1;
        let first = waiting.due.peek().is_none_or(|due| at < due.at);
        waiting.due.push(Due { at, number, answer });
        drop(waiting);
        if first {
            self.changed.notify_one();
        }
    }

    fn serve(&self) {
        // A sleep may end 50 us late otherwise (prctl(2)); where it can't be set, it does.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut waiting = self.waiting();
        while !waiting.ended {
            let now = Instant::now();
            waiting = match waiting.due.peek().map(|due| due.at) {
                None => self.changed.wait(waiting).expect(ALIVE),
                Some(at) if at > now => {
                    self.changed.wait_timeout(waiting, at - now).expect(ALIVE).0
                }
                Some(_) => {
                    let due = waiting.due.pop();
                    drop(waiting);
                    if let Some(due) = due {
                        (due.answer)();
                    }
                    self.waiting()
                }
            };
        }
    }
}

const ALIVE: &str = "no thread panics under this lock";

/// The earliest is the greatest: a `BinaryHeap` gives that first.
impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}
