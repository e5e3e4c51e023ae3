//! What is open, by the number that the kernel knows it by.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use fuser::FileHandle;
use rustix::io::{Errno, Result};

use super::ALIVE;

/// Files, or directories.
pub struct Handles<T> {
    known: Mutex<HashMap<u64, Arc<T>>>,
    next: AtomicU64,
}

impl<T> Handles<T> {
    pub fn new() -> Self {
        Self {
            known: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    pub fn add(&self, opened: T) -> FileHandle {
        let number = self.next.fetch_add(1, Relaxed);
        self.known
            .lock()
            .expect(ALIVE)
            .insert(number, Arc::new(opened));
        FileHandle(number)
    }

    pub fn get(&self, handle: FileHandle) -> Result<Arc<T>> {
        let known = self.known.lock().expect(ALIVE);
        known.get(&handle.0).cloned().ok_or(Errno::BADF)
    }

    pub fn remove(&self, handle: FileHandle) -> Option<Arc<T>> {
        self.known.lock().expect(ALIVE).remove(&handle.0)
    }
}
