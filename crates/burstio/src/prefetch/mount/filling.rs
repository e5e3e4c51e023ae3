//! Filling the cache in the order of a list, while nobody asks for anything in particular.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::engine::Engine;
use super::super::schedule::Sample;
use super::super::stream::TakeError;

/// Samples taken at once; a few times as many are planned, so that reads overlap.
const TURN: usize = 16;
const PLANNED: usize = 32 * TURN;
/// Between two looks at whether it may go on.
const PAUSE: Duration = Duration::from_millis(5);

/// A thread that reads, so that it is written; it ends with the list, or when the cache is full.
pub struct Filling {
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Filling {
    pub fn start(engine: Arc<Engine>, order: Vec<Sample>) -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let told = stopping.clone();
        let thread = std::thread::Builder::new()
            .name("burstio-filling".into())
            .spawn(move || fill(&engine, &order, &told))?;
        Ok(Self {
            stopping,
            thread: Some(thread),
        })
    }

    pub fn stop(&mut self) {
        self.stopping.store(true, Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn fill(engine: &Engine, order: &[Sample], stopping: &AtomicBool) {
    let mut stream = engine.background_stream();
    let mut left = order.chunks(TURN);
    let go_on = || !stopping.load(Relaxed) && !engine.cache_is_full();
    while go_on() {
        if engine.writer_is_behind() || stream.others_have_plans() {
            std::thread::sleep(PAUSE); // the source and the memory are theirs
            continue;
        }
        while stream.remaining() < PLANNED
            && let Some(next) = left.next()
        {
            if stream.plan(next).is_err() {
                return;
            }
        }
        match stream.take(TURN, go_on) {
            Ok(taken) if taken.is_empty() => return,
            Err(TakeError::Closed | TakeError::Interrupted) => return,
            Ok(_) | Err(TakeError::Read(_)) => {} // who reads that file is told what is wrong
        }
    }
}
