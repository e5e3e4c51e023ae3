//! Filling the cache in the order of a list, while nobody asks for anything in particular.

use std::collections::VecDeque;
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
            .spawn(move || fill(&engine, order.into(), &told))?;
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

fn fill(engine: &Engine, mut left: VecDeque<Sample>, stopping: &AtomicBool) {
    let mut stream = engine.background_stream();
    let go_on = || !stopping.load(Relaxed) && !engine.cache_is_full();
    while go_on() {
        if engine.writer_is_behind() || stream.others_have_plans() {
            // The source and the memory are theirs: what has begun is let go when it is there.
            for sample in stream.unplan().into_iter().rev() {
                left.push_front(sample);
            }
            if stream.remaining() == 0 {
                std::thread::sleep(PAUSE);
                continue;
            }
        } else {
            let next = PLANNED.saturating_sub(stream.remaining()).min(left.len());
            let next: Vec<Sample> = left.drain(..next).collect();
            if stream.plan(&next).is_err() {
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
