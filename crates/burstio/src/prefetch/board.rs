//! The schedule between threads: who waits for what, and who is woken.
//!
//! One lock, two kinds of sleepers: workers without a task, and consumers without their minibatch. No
//! sample may be dropped under the lock, because giving its memory back takes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::schedule::{Delivery, From, Place, Sample, Schedule, StreamId, Task};
use super::sync::{Condvar, Mutex, MutexGuard};

/// How often who waits for a minibatch looks whether it still should; a model knows no time.
const LOOK: Duration = if cfg!(loom) {
    Duration::MAX
} else {
    Duration::from_millis(100)
};

/// Why a minibatch did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfulfilled {
    /// The time limit passed while this sample was being waited for.
    Stalled(Sample, Option<From>),
    /// The consumer does not want it any more.
    Interrupted,
    /// The engine is being closed.
    Stopped,
}

/// A [`Schedule`] that threads wait at.
pub struct Board<T, E> {
    state: Mutex<State<T, E>>,
    work: Condvar,
    ready: Condvar,
}

struct State<T, E> {
    schedule: Schedule<T, E>,
    idle: usize,
    stopping: bool,
}

impl<T, E> Board<T, E> {
    /// Nobody waits yet.
    pub fn new(schedule: Schedule<T, E>) -> Self {
        let state = State {
            schedule,
            idle: 0,
            stopping: false,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            ready: Condvar::new(),
        }
    }

    /// For a worker: the next task, waited for; None when the engine is being closed.
    pub fn next_task(&self, whence: impl Fn(Sample) -> From) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.stopping {
                return None;
            }
            let task = state.schedule.next_task(&whence);
            self.wake_ready(&mut state);
            if task.is_some() {
                self.wake_worker(&state);
                return task;
            }
            state.idle += 1;
            state = self
                .work
                .wait(state)
                .expect("no thread panics under this lock");
            state.idle -= 1;
        }
    }

    /// See [`Schedule::place`].
    pub fn place(&self, sample: Sample, size: usize) -> Option<Place> {
        self.lock().schedule.place(sample, size)
    }

    /// See [`Schedule::fall_back`].
    pub fn fall_back(&self, sample: Sample) {
        self.lock().schedule.fall_back(sample);
    }

    /// See [`Schedule::complete`].
    pub fn complete(
        &self,
        sample: Sample,
        result: &Result<Arc<T>, Arc<E>>,
        latency: Duration,
        now: Duration,
    ) {
        let mut state = self.lock();
        state.schedule.complete(sample, result, latency, now);
        self.wake_ready(&mut state);
    }

    /// See [`Schedule::give_back`].
    pub fn give_back(&self, place: Place, size: usize) {
        let mut state = self.lock();
        state.schedule.give_back(place, size);
        self.wake_worker(&state);
    }

    /// A new consumer.
    pub fn open(&self) -> StreamId {
        self.lock().schedule.open()
    }

    /// Append to what `stream` will take.
    pub fn plan(&self, stream: StreamId, samples: &[Sample]) {
        let mut state = self.lock();
        state.schedule.plan(stream, samples);
        self.wake_worker(&state);
    }

    /// Whether the source is to be read only for those who wait; asked under the lock, so that the
    /// last answer is the newest.
    pub fn hold_back(&self, answer: impl FnOnce() -> bool) {
        let mut state = self.lock();
        state.schedule.hold_back = answer();
        if !state.schedule.hold_back {
            self.wake_worker(&state);
        }
    }

    /// Samples that `stream` has planned and not taken.
    pub fn remaining(&self, stream: StreamId) -> usize {
        self.lock().schedule.remaining(stream)
    }

    /// Forget what `stream` has planned and not taken.
    pub fn reset(&self, stream: StreamId) {
        let held = self.lock().schedule.reset(stream);
        drop(held);
    }

    /// The consumer is gone.
    pub fn close(&self, stream: StreamId) {
        let held = self.lock().schedule.close(stream);
        self.ready.notify_all();
        drop(held);
    }

    /// For a consumer: its next `count` samples, waited for at most `limit`; `go_on` is asked
    /// every now and then.
    pub fn take(
        &self,
        stream: StreamId,
        count: usize,
        limit: Duration,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Vec<Delivery<T, E>>, Unfulfilled> {
        let mut asked = Instant::now();
        let deadline = asked + limit;
        let mut state = self.lock();
        loop {
            if let Some(taken) = state.schedule.take(stream, count) {
                self.wake_worker(&state);
                return Ok(taken);
            }
            let awaited = state.schedule.awaited(stream);
            if matches!(awaited, Some((_, None | Some(From::Source)))) {
                state.schedule.depth.starved();
            }
            self.wake_worker(&state);
            let left = deadline.saturating_duration_since(Instant::now());
            let why = match awaited {
                _ if state.stopping => Unfulfilled::Stopped,
                Some((sample, from)) if left.is_zero() => Unfulfilled::Stalled(sample, from),
                _ => {
                    let slept = self.ready.wait_timeout(state, left.min(LOOK));
                    (state, _) = slept.expect("no thread panics under this lock");
                    if asked.elapsed() < LOOK {
                        continue; // woken for another's minibatch too, which may be often
                    }
                    drop(state); // asking may take long
                    let wanted = go_on();
                    asked = Instant::now();
                    state = self.lock();
                    if wanted {
                        continue;
                    }
                    Unfulfilled::Interrupted
                }
            };
            state.schedule.give_up(stream);
            return Err(why);
        }
    }

    /// Wake everybody for good.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopping = true;
        self.work.notify_all();
        self.ready.notify_all();
    }

    /// Look at the schedule, or change something that wakes nobody.
    pub fn with<R>(&self, look: impl FnOnce(&mut Schedule<T, E>) -> R) -> R {
        look(&mut self.lock().schedule)
    }

    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().expect("no thread panics under this lock")
    }

    fn wake_worker(&self, state: &State<T, E>) {
        if state.idle > 0 && state.schedule.may_have_task() {
            self.work.notify_one();
        }
    }

    fn wake_ready(&self, state: &mut State<T, E>) {
        if state.schedule.fulfilled() {
            self.ready.notify_all();
        }
    }
}
