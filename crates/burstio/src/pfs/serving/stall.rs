//! Servers that don't answer.

use std::sync::{Condvar, Mutex};

use super::ALIVE;

/// Whether the servers answer.
#[derive(Default)]
pub struct Stall {
    stalled: Mutex<bool>,
    over: Condvar,
}

impl Stall {
    /// Begin or end it; returns whether it is now.
    pub fn toggle(&self) -> bool {
        let mut stalled = self.stalled.lock().expect(ALIVE);
        *stalled = !*stalled;
        self.over.notify_all();
        *stalled
    }

    /// As a client waits for dead servers: for ever.
    pub fn wait(&self) {
        let stalled = self.stalled.lock().expect(ALIVE);
        let _going_on = self
            .over
            .wait_while(stalled, |stalled| *stalled)
            .expect(ALIVE);
    }
}
