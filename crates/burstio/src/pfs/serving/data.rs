//! Operations on what files hold: what they do, and when they end.

use std::os::fd::OwnedFd;

use fuser::{FileHandle, FopenFlags, INodeNo};
use rustix::fs::fstat;
use rustix::io::Result;

use super::super::open::Open;
use super::{ALIVE, AT_ONCE, Served};

impl Served {
    /// An opened file, and what the kernel is to do with it.
    pub(super) fn opened(
        &self,
        number: u64,
        file: OwnedFd,
        flags: i32,
    ) -> Result<(FileHandle, FopenFlags)> {
        let open = Open::new(file, flags);
        let mut answer = FopenFlags::empty();
        if !open.changes {
            answer |= FopenFlags::FOPEN_NOFLUSH;
        }
        let node = self.nodes.reading(number)?;
        let found = fstat(&open.file)?;
        if !node.was_told_other(&found) {
            answer |= FopenFlags::FOPEN_KEEP_CACHE;
        } else if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(INodeNo(number), -1, 0); // attributes; or they expire
        }
        Ok((self.open.add(open), answer))
    }

    /// read(2): the bytes, and when they have come.
    pub(super) fn fetch(
        &self,
        handle: FileHandle,
        offset: u64,
        size: usize,
    ) -> Result<(Vec<u8>, f64)> {
        self.stall.wait();
        let began = self.later.now();
        let bytes = self.open.get(handle)?.read(size, offset)?;
        let end = self.costs.transfer(began, bytes.len());
        Ok((bytes, end))
    }

    /// write(2): how many bytes, and when the client may go on.
    pub(super) fn store(
        &self,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(usize, f64)> {
        self.stall.wait();
        let began = self.later.now();
        let open = self.open.get(handle)?;
        let count = open.write(&self.nodes, bytes, offset)?;
        if open.direct {
            return Ok((count, self.costs.transfer(began, count)));
        }
        let (end, stored) = self.costs.write_behind(began, count);
        *open.stored_s.lock().expect(ALIVE) = Some(stored);
        Ok((count, end))
    }

    /// close(2) of one of the descriptors; returns when it has ended.
    pub(super) fn flushed(&self, handle: FileHandle) -> Result<f64> {
        self.stall.wait();
        let open = self.open.get(handle)?;
        match self.committed(&open, false) {
            Some(end) => open.flush().map(|()| end),
            None => Ok(AT_ONCE),
        }
    }

    /// fsync(2) or fdatasync(2); returns when it has ended.
    pub(super) fn synced(&self, handle: FileHandle, data_only: bool) -> Result<f64> {
        self.stall.wait();
        let open = self.open.get(handle)?;
        open.sync(data_only)?;
        Ok(self.committed(&open, true).unwrap_or(AT_ONCE))
    }

    /// What was written must be on the servers; returns when it is.
    fn committed(&self, open: &Open, always: bool) -> Option<f64> {
        let stored = open.stored_s.lock().expect(ALIVE).take();
        let now = self.later.now();
        match stored {
            None if !always => None,
            stored => Some(self.costs.commit(now, stored.unwrap_or(now))),
        }
    }
}
